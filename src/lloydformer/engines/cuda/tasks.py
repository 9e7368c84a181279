"""Which kernels run which task; those that decline return None."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.robust_iterations import robust_iterations, thresholds
from lloydformer.engines.cuda.seeds import knows, seeds
from lloydformer.engines.cuda.soft_iterations import soft_iterations
from lloydformer.engines.cuda.steps import Steps
from lloydformer.engines.cuda.work import (
    EMPTY,
    NOT_LANDED,
    PAUSED,
    RECORDS,
    SETTLED,
    Report,
    Work,
)
from lloydformer.plans.contract import Final, Ran
from lloydformer.plans.means import Iterations
from lloydformer.plans.robust import RobustIterations, Thresholds
from lloydformer.plans.seeding import Seeds
from lloydformer.plans.soft import SoftIterations


def _iterations(points: PointsOnGpu, task: Iterations) -> Ran | None:
    points.labelled = False
    if points.declined:
        return None
    known = points.steps(len(task.centers))
    return None if known is None else _Run(points, *known, task).result()


@dataclass
class _Run:
    """Iterations on the stream, looked at from time to time."""

    points: PointsOnGpu
    work: Work
    steps: Steps
    task: Iterations
    history: list[float] = field(default_factory=list)
    refilled: int = 0
    """Iterations that `refill` has ended since the last report: 0 or 1."""

    def result(self) -> Ran | None:
        most, report = self.steps.at_once, None
        at_once = most if self.task.max_iter <= most else max(1, most // 4)
        self.steps.begin(self.task.centers, self.task.tolerance)
        try:
            while report is None or self._goes_on(report):
                self._enqueue(at_once)
                if report is None and not self.points.exact:  # asked while the device works
                    self.points.forget_steps()
                    return None
                report = self._reported()
                at_once = min(2 * at_once, RECORDS - 1)
        except KeyboardInterrupt:
            return self._broken_off()
        return self._ran(report)

    def _reported(self) -> Report:
        report, self.refilled = self.work.report(), 0
        self.history += [self.task.objective(change) for change in report.changes]
        return report

    def _goes_on(self, report: Report) -> bool:
        """Are there more iterations? If so, prepare them."""
        if report.ended != NOT_LANDED or report.status == SETTLED:
            return False
        if report.status == EMPTY:
            distances = self.points.state.column("distances")
            self.refilled = int(self.steps.refill(report.masses, distances))
            return self.refilled > 0
        if report.status == PAUSED:
            self.work.resume()
        return len(self.history) < self.task.max_iter

    def _enqueue(self, at_once: int) -> None:
        """Put iterations on the stream, and the last assignment behind them."""
        left = self.task.max_iter - len(self.history) - self.refilled
        for _ in range(min(at_once, left)):
            self.steps.step()
        if self.points.lands:
            self.steps.land(last=at_once >= left)

    def _ran(self, report: Report) -> Ran:
        points, empty, final = self.points, report.status == EMPTY, None
        points.changed = self.work.changed[0].clone() if empty else None
        if report.ended != NOT_LANDED:
            inertia, masses = report.total * self.task.unit, report.masses / points.points.mass_unit
            final = Final(inertia, inertia, tuple(masses.tolist()))
            points.state.set_labels(self.work.hand_over())
        settled = SETTLED in (report.status, report.ended)
        return Ran(self.work.centers.clone(), self.history, settled, empty, final=final)

    def _broken_off(self) -> Ran:
        """After Ctrl-C: the iterations that are done. Kernels may have left off in the middle."""
        self._reported()
        centers = self.work.centers.clone()
        self.points.forget_steps()
        return Ran(centers, self.history, settled=False, interrupted=True)


def _seeds(points: PointsOnGpu, task: Seeds) -> list[Tensor] | None:
    if points.kernels != CUDA_CPP or points.too_many_rows:
        return None
    if not knows(points.points, task.draws.shape[2]):
        return None
    try:
        return seeds(points.points, task.firsts, task.draws)
    except torch.OutOfMemoryError:  # one start after the other takes less, by PyTorch
        return None


TASKS: dict[type, Callable[[PointsOnGpu, Any], Any | None]] = {
    Iterations: _iterations, Seeds: _seeds, SoftIterations: soft_iterations,
    RobustIterations: robust_iterations, Thresholds: thresholds,
}  # fmt: skip
"""Kernels by the task that they run."""
