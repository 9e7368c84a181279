"""The paper's table tab:comp-alg, and the circuits that it does not list."""

import json
from functools import cache
from importlib.resources import files

from lloydformer.paper.artefact import Record

BEYOND = {
    "informal": ("Lloyd's algorithm", "dot products, and d rectified units with a shift"),
    "soft_dot": ("*Soft k-means", "dot-product scores in place of Euclidean ones"),
    "spherical_layer": ("Spherical k-means", "LayerNorm, for points whose coordinates sum to 0"),
    "robust_lifted": ("*Robust k-means", "dot-product scores in place of Euclidean ones"),
    "lloyd_binary": ("Lloyd's algorithm", "clusters as binary codes, d + log2 k dimensions"),
}
"""By name, algorithm and description: what the table does not list."""


@cache
def paper_table() -> Record:
    """The paper's table, cell by cell: `columns`, and `rows` by the names of our recipes."""
    path = files("lloydformer.paper.comp_alg") / "table.json"
    table: Record = json.loads(path.read_text(encoding="utf-8"))
    return table
