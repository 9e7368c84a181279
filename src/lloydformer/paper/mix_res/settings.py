"""Names of the families and columns of tab:mix-res."""

from lloydformer.paper.lloyd_comparison import N_STEPS

LABEL = "mix-res"
TITLES = {
    "normal": "Normal", "cauchy": "Cauchy", "gumbel": "Gumbel", "laplace": "Laplace",
    "lognormal": "LogNormal",
}  # fmt: skip
COLUMNS = {"initial": "initial", "lloyd": "Lloyd's", "transformer": "transformer"}
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}
"""Columns that the paper does not have."""
