"""k-means and spherical k-means on a GPU: their folds, and whole iterations as one task."""

from dataclasses import dataclass, field
from typing import Any

import torch

from lloydformer.engines.cuda.lloyd_state import (
    EMPTY,
    NOT_FINAL,
    PAUSED,
    RECORD_LENGTH,
    SETTLED,
    LloydKernels,
    LloydReport,
)
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.plans import assign
from lloydformer.plans.contract import FinalAssignment, IterationsResult
from lloydformer.plans.means import LloydIterations


def fold_moments(arrays: CudaPointArrays, fold: assign.Moments) -> Any:
    """Return the moments, which are computed once per session."""
    return arrays.moments


def fold_nearest_sums(arrays: CudaPointArrays, fold: assign.NearestSums) -> Any:
    """Label the points; return sums, masses and the number of changed labels."""
    kernels = arrays.assign_labels(fold.centers) if arrays.sums_are_precise else None
    if kernels is None:
        return None
    state, points = kernels.state, arrays.points
    sums = state.sums.double() / points.sum_unit
    masses = state.masses.double() / points.mass_unit
    changed = state.changed[0] + (0 if arrays.pending_changes is None else arrays.pending_changes)
    arrays.pending_changes = None
    return sums, masses, changed


def fold_nearest_distances(arrays: CudaPointArrays, fold: assign.NearestDistances) -> Any:
    """Label the points and measure distances; return the sum of w d^2 and the masses.

    Distances and masses need no fixed-point sums of points, so that outliers do not matter; for
    `NearestCosines` the mass of a cluster is the sum of w x c, which needs them.
    """
    by_cosine = isinstance(fold, assign.NearestCosines)
    if by_cosine and not arrays.sums_are_precise:
        return None
    kernels = arrays.assign_labels(fold.centers)
    if kernels is None:
        return None
    state, points = kernels.state, arrays.points
    total = kernels.measure(arrays.state.column("distances"))
    if by_cosine:
        return total, (state.sums.double() / points.sum_unit * state.rounded.double()).sum(dim=1)
    return total, state.masses.double() / points.mass_unit


def fold_farthest(arrays: CudaPointArrays, fold: assign.Farthest) -> assign.FarthestPoints | None:
    """Return the points that are farthest from their centers, by (distance, row)."""
    kernels = arrays.lloyd_kernels(len(fold.centers)) if arrays.labels_current else None
    if kernels is None or not torch.equal(kernels.state.rounded, fold.centers):
        return None
    away = torch.empty(arrays.layout.n_rows, dtype=fold.centers.dtype, device=fold.centers.device)
    kernels.measure(away)
    weights = arrays.blocks.sample_weight
    if weights is None:
        weights = torch.ones_like(away, dtype=torch.float64)
    away = away.double().masked_fill(weights <= 0, -1.0)
    # topk breaks ties in any order: take all rows that are as far, and sort them stably.
    least = away.topk(min(fold.m, len(away))).values[-1]
    rows = (away >= least).nonzero()[:, 0]
    rows = rows[away[rows].sort(descending=True, stable=True).indices[: fold.m]]
    taken, labels = arrays.blocks.take(rows).double(), kernels.state.assigned[rows].long()
    return assign.FarthestPoints(away[rows], rows, labels, taken, weights[rows])


def run_lloyd_iterations(arrays: CudaPointArrays, task: LloydIterations) -> IterationsResult | None:
    """Run whole iterations; None if there are no kernels for them."""
    arrays.labels_current = False
    if arrays.known_imprecise:
        return None
    kernels = arrays.lloyd_kernels(len(task.centers))
    return None if kernels is None else LloydRun(arrays, kernels, task).run()


@dataclass
class LloydRun:
    """Iterations on the stream; the host reads their state from time to time.

    Attributes
    ----------
    arrays, kernels, task
        The points, the kernels, and the task that they run.
    history : list of float
        The objective of each iteration that has been read.
    n_filled : int
        Iterations that `fill_empty` has ended since the last report: 0 or 1.
    """

    arrays: CudaPointArrays
    kernels: LloydKernels
    task: LloydIterations
    history: list[float] = field(default_factory=list)
    n_filled: int = 0

    def run(self) -> IterationsResult | None:
        """Enqueue batches of iterations, each twice as long as the one before, until they end."""
        task, kernels, report = self.task, self.kernels, None
        # A fit that may be long is looked at early: it often ends long before max_iter.
        first = kernels.first_batch
        batch = first if task.max_iter <= first else max(1, first // 4)
        kernels.begin(task.centers, task.tolerance)
        try:
            while report is None or self._continue_after(report):
                left = task.max_iter - len(self.history) - self.n_filled
                for _ in range(min(batch, left)):
                    kernels.step()
                if self.arrays.has_raw_units:
                    kernels.assign_final(last=batch >= left)
                # Reads the points: here, so that the host does it while the device iterates.
                if report is None and not self.arrays.sums_are_precise:
                    self.arrays.release_kernels()
                    return None
                report = self._read_report()
                batch = min(2 * batch, RECORD_LENGTH - 1)  # `fill_empty` may add one more
        except KeyboardInterrupt:
            # Kernels may have stopped half-way: keep the finished iterations, not the state.
            self._read_report()
            centers = kernels.state.centers.clone()
            self.arrays.release_kernels()
            return IterationsResult(centers, self.history, settled=False, interrupted=True)
        state, empty, final = kernels.state, report.status == EMPTY, None
        self.arrays.pending_changes = state.changed[0].clone() if empty else None
        if report.final_status != NOT_FINAL:
            inertia = report.total * task.unit
            masses = report.masses / self.arrays.points.mass_unit
            final = FinalAssignment(inertia, inertia, tuple(masses.tolist()))
            self.arrays.state.set_labels(state.release_labels())
        settled = SETTLED in (report.status, report.final_status)
        return IterationsResult(state.centers.clone(), self.history, settled, empty, final=final)

    def _read_report(self) -> LloydReport:
        report, self.n_filled = self.kernels.state.read_report(), 0
        self.history += [self.task.objective(change) for change in report.changes]
        return report

    def _continue_after(self, report: LloydReport) -> bool:
        """Prepare more iterations, and return True if there are any."""
        if report.final_status != NOT_FINAL or report.status == SETTLED:
            return False
        if report.status == EMPTY:
            distances = self.arrays.state.column("distances")
            self.n_filled = int(self.kernels.fill_empty(report.masses, distances))
            return self.n_filled > 0
        if report.status == PAUSED:
            self.kernels.state.resume()
        return len(self.history) < self.task.max_iter
