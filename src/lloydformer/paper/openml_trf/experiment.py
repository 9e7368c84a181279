"""Measure tab:openml-trf: the trained layer and Lloyd's algorithm on parts of each data set.

Each column of a whole set is scaled to [0, 1]; then every trial draws rows, columns and centers.
(If columns were scaled after the draw, the results for ailerons would be 0.5 above the paper's.)
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import compare_on
from lloydformer.learning.pretrained import load
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.datasets import scaled
from lloydformer.paper.openml_trf.settings import (
    BEYOND,
    COLUMNS,
    LABEL,
    MOST_COLUMNS,
    N_CLUSTERS,
    N_STEPS,
)
from lloydformer.paper.paper_numbers import row_names
from lloydformer.paper.scope import Scope
from lloydformer.solving.batch.fit import fit_batch

LAYER = "d32-k10"
N_STARTS = 10
MOST_ROWS = 1024


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each data set."""
    return {name: partial(measured, name, scope) for name in row_names(LABEL)}


def measured(name: str, scope: Scope) -> Record:
    """Mean and standard deviation of the log objectives over the trials, for all columns."""
    points = scaled(name)
    batch = drawn(points, scope.count(16, 40), np.random.default_rng(scope.seed))
    batch = Batch(*(part.to(scope.device) for part in batch))
    layer = load(LAYER)
    found = compare_on(batch, layer.layer, layer.weights.to(scope.device), N_STEPS, scope.seed)
    logs = {
        "initial": found.by_lloyd[0, :, 0], "lloyd": found.by_lloyd[0, :, -1],
        "transformer": found.by_layer[0, :, -1],
        **_beyond(batch, found.centers[0], scope.seed),
    }  # fmt: skip
    values = {column: log.double() for column, log in logs.items()}
    return {
        "n_points": len(points), "n_features": points.shape[1], "n_trials": found.n_tasks,
        "mean": {column: round(float(v.mean()), 5) for column, v in values.items()},
        "std": {column: round(float(v.std(correction=0)), 5) for column, v in values.items()},
    }  # fmt: skip


def drawn(points: Float[Tensor, "n d"], n_trials: int, rng: np.random.Generator) -> Batch:
    """For each trial random rows and columns, and some of these points as initial centers."""
    n, d = min(MOST_ROWS, len(points)), min(MOST_COLUMNS, points.shape[1])
    parts = []
    for _ in range(n_trials):
        rows, columns = rng.permutation(len(points))[:n], rng.permutation(points.shape[1])[:d]
        parts.append(points[rows][:, columns])
    starts = [part[rng.permutation(n)[:N_CLUSTERS]] for part in parts]
    return Batch(torch.stack(parts).float()[None], torch.stack(starts).float()[None])


def _beyond(batch: Batch, after: Tensor, seed: int) -> dict[str, Tensor]:
    """The log objectives of the columns BEYOND; `after`: the centers that the layer found."""
    points, starts = batch.points[0], batch.centers[0]
    ends = {
        "polished": _lloyd(points, N_STEPS, init=after.to(points)),
        "lloyd_longer": _lloyd(points, 2 * N_STEPS, init=starts),
        "greedy": _lloyd(points, N_STEPS, random_state=seed),
        "ten_random": _lloyd(points, N_STEPS, init="random", n_init=N_STARTS, random_state=seed),
        "ten_greedy": _lloyd(points, N_STEPS, n_init=N_STARTS, random_state=seed),
    }
    return {column: inertia.log().cpu() for column, inertia in ends.items()}


def _lloyd(points: Tensor, n_steps: int, **start: Any) -> Float[Tensor, " b"]:
    """The objective after `n_steps` of Lloyd's algorithm; `start`: options of `fit_batch`."""
    found: Tensor = fit_batch(points, N_CLUSTERS, max_iter=n_steps, tol=0.0, **start).inertia
    return found


def result(found: Mapping[str, Record]) -> Record:
    """A row of the table for each set: the paper's columns, then BEYOND."""
    return {
        "rows": {name: _row(one) for name, one in found.items()},
        "sizes": {name: [one["n_points"], one["n_features"]] for name, one in found.items()},
        "n_trials": next(iter(found.values()))["n_trials"],
    }


def _row(one: Record) -> Record:
    mean, std = one["mean"], one["std"]
    pairs = {column: mean[column] for column in COLUMNS}
    pairs |= {f"{column}_std": std[column] for column in COLUMNS}
    relative = 100 * (mean["transformer"] - mean["lloyd"]) / mean["lloyd"]
    return {**pairs, "relative_diff_percent": round(relative, 3), **{b: mean[b] for b in BEYOND}}
