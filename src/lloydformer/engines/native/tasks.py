"""Which kernel runs which task."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.plans.contract import IterationsResult, Sums
from lloydformer.plans.means import LloydIterations
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.minibatch import MinibatchSums
from lloydformer.plans.recombining import Mutation, WardMerging
from lloydformer.plans.relocating import (
    RelocatingIterations,
    RelocatingResult,
    Relocation,
    RelocationResult,
)
from lloydformer.plans.seeding import PlusPlusSeeds

_SMALL = 1 << 22
"""Products n d k up to which one call is faster than bounds and several threads."""
_AT_ONCE = 1024
"""Iterations of a call at most: bounds the memory of its history, and lets Ctrl-C in."""


_PRODUCTS = 1 << 32
"""Products of numbers that a call with sparse rows computes before it lets Ctrl-C in: seconds."""


def in_one_call(n_rows: int, n_features: int, n_clusters: int) -> bool:
    """Does one call run all iterations of k-means on dense rows?"""
    return n_rows * n_features * n_clusters <= _SMALL


def _iterations(points: OpenPoints, task: LloydIterations) -> IterationsResult | None:
    k, d = task.centers.shape
    if not in_one_call(points.layout.n_rows, d, k):
        return None
    return _iterated(points, task, _AT_ONCE)


def _sparse_iterations(points: OpenPoints, task: LloydIterations) -> IterationsResult:
    assert isinstance(points.blocks, SparseBlocks)
    products = (points.blocks.matrix.nnz + points.layout.n_features) * len(task.centers) + 1
    return _iterated(points, task, max(1, min(_AT_ONCE, _PRODUCTS // products)))


def _iterated(points: OpenPoints, task: LloydIterations, at_once: int) -> IterationsResult:
    centers = task.centers.clone().contiguous()
    history = torch.zeros(min(task.max_iter, at_once), dtype=torch.float64)
    count, settled = points.kernels.run(
        "iterate", centers=centers.numpy(), **points.columns("labels", "previous"),
        fresh=points.fresh, tolerance=task.tolerance,
        history=history.numpy(),
    )  # fmt: skip
    points.fresh = False
    objectives = [task.objective(change) for change in history[:count].tolist()]
    return IterationsResult(centers, objectives, settled)


def _seeds(points: OpenPoints, task: PlusPlusSeeds) -> list[torch.Tensor] | None:
    n_seeds = task.draws.shape[1] + 1
    if points.layout.n_rows * points.layout.n_features * n_seeds > _SMALL:
        return None
    starts = zip(task.firsts.tolist(), task.draws, strict=True)
    return [_seeds_of_start(points, first, draws) for first, draws in starts]


def _seeds_of_start(points: OpenPoints, first: int, draws: np.ndarray) -> torch.Tensor:
    rows = torch.zeros(len(draws) + 1, dtype=torch.int64)
    rows[0] = first
    count = points.kernels.run(
        "seeds", rows=rows.numpy(), draws=draws, **points.columns("labels", "distances"),
    )  # fmt: skip
    return rows[:count]


def _relocation(points: OpenPoints, task: Relocation) -> RelocationResult:
    centers, draws = task.centers.clone().contiguous(), task.draws
    before, after = points.kernels.run(
        "relocate", centers=centers.numpy(), seed=draws.seed, layer=draws.layer,
        moved=task.n_moved, draws=draws.n_draws,
    )  # fmt: skip
    return RelocationResult(centers, before, after)


_LAYERS = 1 << 22
"""Layers of a call at most: bounds the memory of its history."""


def _walks(points: OpenPoints, task: RelocatingIterations) -> list[RelocatingResult] | None:
    b, k, _ = task.starts.shape
    large = points.layout.n_rows * task.starts[0].numel() > _SMALL
    if large or task.max_layers < 1:
        return None
    layers = min(task.max_layers, _LAYERS // b)
    centers = task.starts.clone().contiguous()
    history, masses = np.empty((b, layers)), np.empty((b, k))
    counts, objectives = np.zeros(b, dtype=np.int64), np.empty(b)
    seeds, interrupted = np.array(task.seeds, dtype=np.int64), False
    try:
        points.kernels.run(
            "walks", centers=centers.numpy(), seeds=seeds,
            history=history, counts=counts, masses=masses, objectives=objectives, layer=task.layer,
            moved=task.n_moved, draws=task.n_draws, patience=task.patience,
            rest=-1 if task.rest is None else task.rest, tolerance=task.tolerance,
        )  # fmt: skip
    except KeyboardInterrupt:  # it is raised when the call has returned
        interrupted = True
        if not counts.all():  # or before it
            raise
    more = (task.rest or 0) + 3 + min(task.n_moved, k)  # layers until the next relocation is done
    if not interrupted and layers < task.max_layers and counts.max() + more > layers:
        return None  # ended by the size of the history, not by a rule of the walk
    return [
        RelocatingResult(centers[w], tuple(masses[w].tolist()), float(objectives[w]),
               history[w, : counts[w]].tolist(), interrupted)
        for w in range(b)
    ]  # fmt: skip


def _merged(points: OpenPoints, task: WardMerging) -> torch.Tensor:
    left = torch.empty(task.k, task.centers.shape[1], dtype=torch.float64)
    points.kernels.run(
        "merge", centers=task.centers.clone().contiguous().numpy(),
        masses=task.masses.clone().numpy(), merged=left.numpy(),
    )  # fmt: skip
    return left


def _mutation(points: OpenPoints, task: Mutation) -> torch.Tensor:
    centers = task.centers.clone().contiguous()
    points.kernels.run("mutate", centers=centers.numpy(), seed=task.seed, number=task.number)
    return centers


def _batch_sums(points: OpenPoints, task: MinibatchSums) -> tuple[Sums, torch.Tensor]:
    k, d = task.centers.shape
    sums, counts, objective = (
        torch.zeros(shape, dtype=torch.float64) for shape in ((k, d), (k,), (1,))
    )
    points.kernels.run(
        "minibatch", rows=task.rows.numpy(), centers=task.centers.contiguous().numpy(),
        sums=sums.numpy(), counts=counts.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    return Sums(sums, counts), objective[0]


_METRICS = {"sqeuclidean": 0, "euclidean": 1, "manhattan": 2, "precomputed": 3, "cosine": 0}
"""Places in the kernels' `Metric`; rows are directions for "cosine"."""


def _medoid_move(
    points: OpenPoints, task: MedoidMove
) -> tuple[float, bool, bool, torch.Tensor] | None:
    if points.layout.n_rows >= 2**31:
        return None
    arguments = dict(task.arguments)
    if "metric" in arguments:
        arguments["metric"] = _METRICS[arguments["metric"]]
    medoids = task.medoids.clone()
    kernel = f"medoid_{task.name}"
    loss, fell, done = points.kernels.run(kernel, medoids=medoids.numpy(), **arguments)
    return loss, fell, done, medoids


TASKS: dict[type, Callable[[OpenPoints, Any], Any | None]] = {
    LloydIterations: _iterations,
    PlusPlusSeeds: _seeds,
    Relocation: _relocation,
    RelocatingIterations: _walks,
    WardMerging: _merged,
    Mutation: _mutation,
    MinibatchSums: _batch_sums,
    MedoidMove: _medoid_move,
}
"""Kernels by the task that they run; they return None for problems that are too large."""

SPARSE_TASKS: dict[type, Callable[[OpenPoints, Any], Any | None]] = {
    LloydIterations: _sparse_iterations
}
"""Those for sparse rows."""
