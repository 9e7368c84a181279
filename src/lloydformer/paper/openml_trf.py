"""tab:openml-trf: the trained layer on 15 real data sets, beside Lloyd's algorithm.

Each column of a whole set is scaled to [0, 1]; then every trial draws rows, columns and centers.
(Scaled after the draw, the columns of ailerons would come out 0.5 above the paper's.)
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
from lloydformer.paper.artefact import Artefact, Found, Piece
from lloydformer.paper.beside import names
from lloydformer.paper.datasets import scaled
from lloydformer.paper.openml_trf_shown import (
    BEYOND,
    COLUMNS,
    LABEL,
    MOST_COLUMNS,
    N_CLUSTERS,
    N_STEPS,
    claims,
    tables,
)
from lloydformer.paper.scope import Scope
from lloydformer.solving.batch.fit import fit_batch

LAYER = "d32-k10"
N_STARTS = 10
MOST_ROWS = 1024


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One for each set."""
    return {name: partial(measured, name, scope) for name in names(LABEL)}


def measured(name: str, scope: Scope) -> Found:
    """Both from the same centers in every trial; then other starts, and steps after the layer."""
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
    """For each trial some rows, some columns, and of these points the initial centers."""
    n, d = min(MOST_ROWS, len(points)), min(MOST_COLUMNS, points.shape[1])
    parts = []
    for _ in range(n_trials):
        rows, columns = rng.permutation(len(points))[:n], rng.permutation(points.shape[1])[:d]
        parts.append(points[rows][:, columns])
    starts = [part[rng.permutation(n)[:N_CLUSTERS]] for part in parts]
    return Batch(torch.stack(parts).float()[None], torch.stack(starts).float()[None])


def _beyond(batch: Batch, after: Tensor, seed: int) -> dict[str, Tensor]:
    """Log objectives of what the paper does not compare with."""
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
    found: Tensor = fit_batch(points, N_CLUSTERS, max_iter=n_steps, tol=0.0, **start).inertia
    return found


def result(found: Mapping[str, Found]) -> Found:
    """A row of the table for each set: the paper's columns, then ours."""
    return {
        "rows": {name: _row(one) for name, one in found.items()},
        "sizes": {name: [one["n_points"], one["n_features"]] for name, one in found.items()},
        "n_trials": next(iter(found.values()))["n_trials"],
    }


def _row(one: Found) -> Found:
    mean, std = one["mean"], one["std"]
    pairs = {column: mean[column] for column in COLUMNS}
    pairs |= {f"{column}_std": std[column] for column in COLUMNS}
    relative = 100 * (mean["transformer"] - mean["lloyd"]) / mean["lloyd"]
    return {**pairs, "relative_diff_percent": round(relative, 3), **{b: mean[b] for b in BEYOND}}


ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:openml-trf",),
    title="The trained transformer on real data",
    about=(
        "A layer trained on mixtures of Gaussians (d = 32, k = 10) and Lloyd's algorithm take ten "
        "steps on 15 OpenML sets; every trial has its own rows, columns and random centers."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
)
