"""Sizes and columns of tab:openml-trf."""

LABEL = "openml-trf"
N_STEPS, N_CLUSTERS = 10, 10
MOST_COLUMNS = 32
"""The dimension of the trained layer."""
COLUMNS = {"initial": "Initial objective", "lloyd": "Lloyd's", "transformer": "k-means transformer"}
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "lloyd_longer": f"Lloyd's, {2 * N_STEPS} steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}
"""Columns that the paper does not have."""
