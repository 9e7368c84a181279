"""Which kernel runs which task, for problems that are small enough for one call."""

from collections.abc import Callable
from typing import Any

import torch

from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.plans.contract import Ran
from lloydformer.plans.means import Iterations
from lloydformer.plans.relocating import Relocated, Relocation
from lloydformer.plans.seeding import Seeds

_SMALL = 1 << 22
"""Products n d k up to which one call is faster than bounds and several threads."""


def _iterations(points: OpenPoints, task: Iterations) -> Ran | None:
    if points.layout.n_rows * task.centers.numel() > _SMALL:
        return None
    centers = task.centers.clone().contiguous()
    history = torch.zeros(task.max_iter, dtype=torch.float64)
    count = points.kernels.iterate(
        centers.numpy(), points.array("labels"), points.array("previous"), task.tolerance,
        history.numpy(),
    )  # fmt: skip
    points.fresh = False
    return Ran(
        centers,
        [task.objective(change) for change in history[:count].tolist()],
        count < task.max_iter,
    )


def _seeds(points: OpenPoints, task: Seeds) -> torch.Tensor | None:
    n_seeds = len(task.draws) + 1
    if points.layout.n_rows * points.layout.n_features * n_seeds > _SMALL:
        return None
    rows = torch.zeros(n_seeds, dtype=torch.int64)
    rows[0] = task.first
    count = points.kernels.seeds(
        rows.numpy(), task.draws, points.array("labels"), points.array("distances")
    )
    return rows[:count]


def _relocation(points: OpenPoints, task: Relocation) -> Relocated:
    centers, draws = task.centers.clone().contiguous(), task.draws
    before, after = points.kernels.relocate(
        centers.numpy(), draws.seed, draws.layer, task.n_moved, draws.n_draws
    )
    return Relocated(centers, before, after)


TASKS: dict[type, Callable[[OpenPoints, Any], Any | None]] = {
    Iterations: _iterations, Seeds: _seeds, Relocation: _relocation,
}  # fmt: skip
"""Kernels by the task that they run; they return None for problems that are too large."""
