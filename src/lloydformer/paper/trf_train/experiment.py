"""Measure fig:trf-train: both algorithms by start, embedding and number of points."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import hypot

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.lloyd_comparison import (
    N_STEPS,
    NAMES,
    compare_with_lloyd,
    final_mean,
    rounded,
)
from lloydformer.paper.scope import Scope
from lloydformer.paper.starts import PLAIN, best_of, greedy, plusplus
from lloydformer.paper.trained_layers import ABLATION, PROPOSED, layers, training_pieces
from lloydformer.paper.trf_train.settings import PANELS, SIZES, SIZES_ROW

N_STARTS = 20


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Four kinds of start and embedding, then the other sizes; a full scope trains first."""
    training = training_pieces(scope, {"training": PROPOSED, "training-ablation": ABLATION})
    panels: dict[str, Piece] = {name: partial(panel, name, scope) for name in PANELS}
    return training | panels | {f"n{n}": partial(sized, n, scope) for n in SIZES}


def panel(name: str, scope: Scope) -> Record:
    """One of PANELS, with 512 points; all panels have the same tasks."""
    batch = _tasks(512, scope)
    candidates = {"plain": PLAIN, "greedy": greedy(batch.centers.shape[2])}
    if name in candidates:
        batch = plusplus(batch, candidates[name], scope.seed)
    found = layers(scope, ABLATION if name == "ablation" else PROPOSED)
    summary = compare_with_lloyd(batch, found, scope)[1]
    return summary | ({"best_of_20": _best(batch, scope)} if name == "greedy" else {})


def sized(n_points: int, scope: Scope) -> Record:
    """Tasks of another size, for the layer that was trained with 512 points."""
    return compare_with_lloyd(_tasks(n_points, scope), layers(scope), scope)[1]


def n_tasks(n_points: int, scope: Scope) -> int:
    """Number of tasks; quick runs have fewer of the two large sizes, as time grows with n^2."""
    fewer = 1 if scope.full else {1024: 2, 2048: 4}.get(n_points, 1)
    return max(1, scope.count(160, 320) // fewer)


def _tasks(n_points: int, scope: Scope) -> Batch:
    tasks = replace(PROPOSED.settings.tasks, n_points=n_points)
    count = n_tasks(n_points, scope)
    return unseen(tasks, "normal", count, scope.seed, scope.device)


def _best(batch: Batch, scope: Scope) -> float:
    """Lloyd's algorithm from the best of 20 starts of greedy k-means++."""
    candidates = greedy(batch.centers.shape[2])
    starts = [plusplus(batch, candidates, scope.seed + i) for i in range(N_STARTS)]
    return rounded(float(best_of(starts, N_STEPS, scope.seed).double().mean()))


def result(found: Mapping[str, Record]) -> Record:
    """Final values, with the keys of the paper's text, and the curves."""
    curves = {PANELS[name]: found[name] for name in PANELS}
    sizes = {str(n): found["random"] if n == 512 else found[f"n{n}"] for n in sorted((512, *SIZES))}
    rows: Record = {name: _ends(one) for name, one in curves.items()}
    rows["greedy k-means++ init"]["best_of_20"] = found["greedy"]["best_of_20"]
    rows[SIZES_ROW] = {n: _ends(one) for n, one in sizes.items()}
    return {"rows": rows, "curves": curves, "sizes": sizes}


def _ends(one: Record) -> Record:
    """Means after the last step; error: upper bound of the standard error of their difference."""
    return {
        "initial": one["lloyd"]["mean"][0], "lloyd": final_mean(one, "lloyd"),
        "transformer": final_mean(one, "transformer"), "won": one["won"],
        "n_tasks": one["n_tasks"],
        "error": rounded(hypot(*(one[who]["error"][-1] for who in NAMES))),
    }  # fmt: skip
