"""Names of the panels of fig:trf-train."""

LABEL = "trf-train"
PANELS = {
    "random": "random init", "ablation": "random init, d_emb=d", "plain": "k-means++ init",
    "greedy": "greedy k-means++ init",
}  # fmt: skip
"""Pieces and the names of their rows; the last one is beyond the paper."""
SIZES = (128, 256, 1024, 2048)
"""Numbers of points besides 512, which the first panel has."""
SIZES_ROW = "n in 128,256,1024,2048"
"""The row of the result that holds one row for each number of points."""
