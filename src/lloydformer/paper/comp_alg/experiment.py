"""Measure tab:comp-alg: run each literal circuit and its plain algorithm on random problems."""

from collections.abc import Mapping
from functools import partial
from zlib import crc32

import numpy as np

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Ties
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.comp_alg import informal
from lloydformer.paper.comp_alg.settings import BEYOND, paper_table
from lloydformer.paper.scope import Scope
from lloydformer.verify.cases import case
from lloydformer.verify.compare import Deviation, free_running, layer_by_layer
from lloydformer.verify.pairs import has_average_ties
from lloydformer.verify.problems import CONTINUOUS, FAMILIES, small_problems

N_LAYERS = 10
INFORMAL = "informal"
"""The circuit of thm:l2-clus-ip-informal, which is no recipe."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each circuit."""
    count = scope.count(quick=40, full=400)
    names = (*paper_table()["rows"], *BEYOND)
    found = {name: partial(_compared, name, count, scope.seed) for name in names}
    return {**found, INFORMAL: partial(_informal, count, scope.seed)}


def _compared(name: str, count: int, seed: int) -> Record:
    """Compare on `count` random problems, of every family and rule for ties in turn.

    layers: each layer starts from the algorithm's centers. free: all layers run without
    correction, on continuous data only.
    """
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


def _informal(count: int, seed: int) -> Record:
    """Compare the theorem's circuit with Lloyd's algorithm, on small problems, free-running."""
    rng = np.random.default_rng([seed, crc32(INFORMAL.encode())])
    each = (informal.compared(problem, N_LAYERS) for problem in small_problems(rng, count))
    none = Deviation(problems=0)
    return {"layers": _written(none), "free": _written(sum(each, none))}


def _written(found: Deviation) -> Record:
    return {
        "problems": found.problems, "deviation": float(f"{found.centers:.3g}"),
        "decisions": found.labels + found.weights,
    }  # fmt: skip


def result(found: Mapping[str, Record]) -> Record:
    """`rows`: the table as the recipes print it. `compared`: the deviations of each circuit."""
    rows = {recipe.name: list(recipe.row().values()) for recipe in recipes.table()}
    return {"columns": paper_table()["columns"], "rows": rows, "compared": dict(found)}
