"""Which kernels run which task; those that decline return None."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.seeds import knows, seeds
from lloydformer.engines.cuda.work import EMPTY, GOING, RECORDS, SETTLED
from lloydformer.plans.contract import Ran
from lloydformer.plans.means import Iterations
from lloydformer.plans.seeding import Seeds


def _iterations(points: PointsOnGpu, task: Iterations) -> Ran | None:
    known = points.steps(len(task.centers)) if points.exact else None
    if known is None:
        return None
    work, steps = known
    steps.begin(task.centers, task.tolerance)
    history: list[float] = []
    status, at_once, interrupted = GOING, steps.at_once, False
    while status == GOING and not interrupted and len(history) < task.max_iter:
        try:
            for _ in range(min(at_once, task.max_iter - len(history))):
                steps.step()
        except KeyboardInterrupt:
            interrupted = True
        status, record = work.so_far()
        history += [task.objective(change) for change in record[:, 0]]
        at_once = min(2 * at_once, RECORDS)
    points.changed = work.changed[0].clone() if status == EMPTY else None
    centers = work.centers.clone()
    return Ran(centers, history, status == SETTLED, status == EMPTY, interrupted)


def _seeds(points: PointsOnGpu, task: Seeds) -> Tensor | None:
    if points.kernels != CUDA_CPP or points.too_many_rows or not knows(points.points, task.draws):
        return None
    distances = points.state.column("distances")
    return seeds(points.points, task.first, task.draws, distances)


TASKS: dict[type, Callable[[PointsOnGpu, Any], Any | None]] = {
    Iterations: _iterations, Seeds: _seeds,
}  # fmt: skip
"""Kernels by the task that they run."""
