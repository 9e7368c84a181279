"""tab:comp-alg: the seven rows as the recipes print them, and each circuit beside its algorithm."""

import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any
from zlib import crc32

import numpy as np

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Ties
from lloydformer.paper.artefact import Artefact, Claim, Found, Piece, Table
from lloydformer.paper.scope import Scope
from lloydformer.verify.cases import case
from lloydformer.verify.compare import Deviation, free_running, layer_by_layer
from lloydformer.verify.finding import TOLERANCE
from lloydformer.verify.pairs import has_average_ties
from lloydformer.verify.problems import CONTINUOUS, FAMILIES

N_LAYERS = 10
BEYOND = {
    "soft_dot": ("*Soft k-means", "dot-product scores in place of Euclidean ones"),
    "spherical_layer": ("Spherical k-means", "LayerNorm, for points whose coordinates sum to 0"),
    "robust_lifted": ("*Robust k-means", "dot-product scores in place of Euclidean ones"),
    "lloyd_binary": ("Lloyd's algorithm", "clusters as binary codes, d + log2 k dimensions"),
}
"""Circuits that the table does not list: the starred variations, and a later result."""
_NOTES = {
    "lloyd_dot": "With plain squares in the network; rectified ones drop negative coordinates.",
    "spherical": "RMSNorm with gain 1/√d; the proof's V_4 = V_3 must read V_4 = -V_3.",
    "soft": "Linear attention is X σ(Yᵀ), columns normalised over the points.",
    "trimmed": "Norm-max with an inverse temperature for each cluster, and √δ for the stated 2δ.",
    "robust": "The row; the appendix builds another circuit for it, robust_lifted below.",
    "medoids": "Draw for draw, with the same noise on both sides.",
}


@cache
def paper() -> dict[str, Any]:
    """The paper's table, cell by cell: `columns`, and `rows` by the names of our recipes."""
    text = (files("lloydformer.paper") / "comp-alg.json").read_text(encoding="utf-8")
    return json.loads(text)


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One for each circuit: so many random problems, of every family and rule for ties in turn."""
    count = scope.count(quick=40, full=400)
    return {
        name: partial(_compared, name, count, scope.seed) for name in (*paper()["rows"], *BEYOND)
    }


def _compared(name: str, count: int, seed: int) -> Found:
    """Layer by layer from the algorithm's centers; where data are continuous, running free too."""
    rng = np.random.default_rng([seed, crc32(name.encode())])
    layers, free = Deviation(problems=0), Deviation(problems=0)
    families = [f for f in FAMILIES if not (f == "shifted" and "spherical" in name)]
    for number in range(count):
        family = families[number % len(families)]
        turn = number // len(families) % 2
        ties: Ties = "average" if turn and has_average_ties(name) else "first"
        layers += layer_by_layer(case(rng, name, family, ties), N_LAYERS)
        if family in CONTINUOUS:
            free += free_running(case(rng, name, family), N_LAYERS) or Deviation(problems=0)
    return {"layers": _written(layers), "free": _written(free)}


def _written(found: Deviation) -> Found:
    return {
        "problems": found.problems, "deviation": float(f"{found.centers:.3g}"),
        "decisions": found.labels + found.weights,
    }  # fmt: skip


def result(found: Mapping[str, Found]) -> Found:
    """The rows as printed from the recipes, and what the comparisons came to."""
    rows = {recipe.name: list(recipe.row().values()) for recipe in recipes.table()}
    return {"columns": paper()["columns"], "rows": rows, "compared": dict(found)}


def differences(rows: Mapping[str, list[str]]) -> list[str]:
    """Every cell of ours that is not the paper's."""
    theirs = paper()
    return [
        f"{name}, {column}: {mine} and not {printed}"
        for name, row in theirs["rows"].items()
        for column, printed, mine in zip(
            theirs["columns"], row, rows.get(name, [""] * len(row)), strict=True
        )
        if mine != printed
    ]


def claims(result: Found) -> list[Claim]:
    """The cells, and that each row is the algorithm that it names."""
    wrong = differences(result["rows"])
    cells = sum(map(len, paper()["rows"].values()))
    return [
        Claim("the recipes print the paper's table, cell by cell", f"{cells} cells",
              f"{cells - len(wrong)} of them", not wrong, "; ".join(wrong)),
        *(_row(result, name, row) for name, row in paper()["rows"].items()),
        *(_variation(result, name) for name in BEYOND),
    ]  # fmt: skip


def _row(result: Found, name: str, row: list[str]) -> Claim:
    parts = ", ".join(row[:4]) + "".join(
        f", {part}" for part, cell in zip(("norm", "network"), row[4:6], strict=True) if cell == "✓"
    )
    says = f"{parts}: {row[6].lstrip('*')}"
    return Claim(says, "exact", *_verdict(result["compared"][name]), _NOTES.get(name, ""))


def _variation(result: Found, name: str) -> Claim:
    algorithm, how = BEYOND[name]
    says = f"{algorithm}, {how}" if algorithm.startswith("*") else f"beyond: {algorithm}, {how}"
    return Claim(says, "exact", *_verdict(result["compared"][name]), f"The recipe {name}.")


def _verdict(found: Found) -> tuple[str, bool]:
    """The largest deviation of the centers, in spreads, and whether it is rounding alone."""
    parts = (found["layers"], found["free"])
    worst, turned = max(p["deviation"] for p in parts), sum(p["decisions"] for p in parts)
    count = sum(p["problems"] for p in parts)
    words = f"off by {worst:.0e} on {count} problems, {turned} decisions differ"
    return words, worst <= TOLERANCE and turned == 0


def tables(result: Found) -> list[Table]:
    """The paper's table with the number of problems and the largest deviation beside."""
    measured = ("problems", "largest deviation")
    rows = [[*row, *_beside(result, name)] for name, row in result["rows"].items()]
    beyond = [[name, *BEYOND[name], *_beside(result, name)] for name in BEYOND]
    return [
        Table("Configurations and their algorithms, printed from the recipes",
              [*result["columns"], *measured], rows),
        Table("Beyond the table", ["recipe", "algorithm", "how", *measured], beyond),
    ]  # fmt: skip


def _beside(result: Found, name: str) -> Iterator[str]:
    parts = list(result["compared"][name].values())
    yield str(sum(part["problems"] for part in parts))
    yield f"{max(part['deviation'] for part in parts):.0e}"


ARTEFACT = Artefact(
    "comp-alg",
    ("tab:comp-alg",),
    "Architectures and algorithms",
    "Different configurations of the transformer are different clustering algorithms. The table "
    "is printed from the recipes, and each recipe's literal circuit is run beside its plain "
    "algorithm on random problems, with ties, duplicates and data far from the origin.",
    pieces, result, claims, tables,
)  # fmt: skip
