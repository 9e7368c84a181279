"""inverse_temperature="scale": a temperature from the spread of the data around their centers.

Both are found by a few iterations from the initial centers. They are divided by the square of a
factor that the data are multiplied by, and do not change when the data are shifted.
"""

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from lloydformer.plans.assign import Moments, NearestDistances
from lloydformer.plans.contract import apply_update
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, weighted_sum
from lloydformer.plans.trimmed import find_radii, target_masses

# Iterations before the spread is measured: it hardly changes after them.
STEPS = 5
# Share of the points of a cluster of mean size that count in robust k-means; a tenth may be
# outliers. Chosen by hand.
COUNTED = 0.9
# The spread is taken to be at least this part of the sum of squares; it is 0 if n = k.
_SMALLEST = 1e-12


def soft_scale(session: Session, starts: list[Tensor]) -> float:
    r"""$\gamma = d \sum_i w_i / \sum_i w_i \lVert x_i - c \rVert^2$ after steps of Lloyd.

    c is the nearest center. The start with the smallest sum of squares counts.
    """
    plan, dtype, results = MeansPlan(), session.layout.dtype, []
    for centers in starts:
        session.forget()
        for _ in range(STEPS):
            centers = apply_update(plan.step(session, centers.to(dtype), 0).update, centers)
        final = plan.finish(session, centers.to(dtype))
        results.append((final.inertia, sum(final.masses or ())))
    # 1 / (2 s^2) is the most likely gamma of clusters of variance s^2 = inertia / (d mass), and
    # about the smallest one at which they keep their centers (Rose, 1998). This is twice that, so
    # that wider clusters than the mean keep theirs: docs/estimators.md has the measurements.
    inertia, mass = min(results)
    return _ratio(session.layout.n_features * mass, max(inertia, _least(session)))


def robust_scale(session: Session, starts: list[Tensor], plan: RobustPlan) -> float:
    r"""$\gamma = k / \sum_i w_i (r^2 - \lVert x_i - c \rVert^2)_+$ after steps of robust k-means.

    c is the nearest center, r the radius of its cluster that holds `COUNTED` of its points. Then
    sparsemax gives weight to these points in a cluster of mean size. Soft-max compares points to
    each other, whatever their number: the sum of the weights takes the place of k. The start with
    the smallest sum counts.
    """
    least, dtype, results = _least(session), session.layout.dtype, []
    for centers in starts:
        session.forget()
        for _ in range(STEPS):
            seen = centers.to(dtype)
            gamma = _by_radii(session, seen, plan, least)
            step = replace(plan, inverse_temperature=gamma).step(session, seen, 0)
            centers = apply_update(step.update, centers)
        results.append(_by_radii(session, centers.to(dtype), plan, least))
    return max(results)  # gamma falls with the sum, so this is the start with the smallest one


@dataclass(frozen=True)
class Inside(SumFold):
    """The sum of w (r^2 - d^2)_+, r being the radius of a point's cluster.

    Precondition: `NearestDistances` has run; reads labels and distances.
    """

    radius: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        inside = self.radius[block.labels.long()] - block.distances
        return (weighted_sum(inside.clamp(min=0), block.weights),)


def _by_radii(session: Session, centers: Tensor, plan: RobustPlan, least: float) -> float:
    """Return the inverse temperature for these centers; see `robust_scale`."""
    _, masses = session.fold(NearestDistances(centers))
    radius = find_radii(session, target_masses(masses, COUNTED), centers.dtype)
    spread = max(session.fold(Inside(radius))[0].item(), least)
    if plan.activation == "sparsemax":
        return _ratio(len(centers) / session.layout.weight_unit, spread)
    return _ratio(masses.sum().item(), spread)


def _least(session: Session) -> float:
    return _SMALLEST * session.fold(Moments())[0].item()


def _ratio(numerator: float, spread: float) -> float:
    """Return a finite number above 0; 1 if there is no spread, as all points are equal."""
    if spread == 0:
        return 1.0
    return min(max(numerator / spread, sys.float_info.min), sys.float_info.max)
