"""inverse_temperature="scale": an inverse temperature, gamma, from the spread of the data.

Soft and robust k-means have a rule each. Both measure the spread around the centers that a few
iterations reach from the initial ones. If the data are multiplied by a factor, gamma is divided by
its square; if the data are shifted, gamma does not change.
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
    r"""Return gamma for soft k-means, measured after `STEPS` iterations of Lloyd's algorithm.

    $\gamma = d \sum_i w_i / \sum_i w_i \lVert x_i - c \rVert^2$, where c is the nearest center. It
    is measured at the start with the smallest sum of squares.
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
    # that wider clusters than the mean keep theirs: docs/soft-clustering.md has the measurements.
    inertia, mass = min(results)
    return _ratio(session.layout.n_features * mass, max(inertia, _smallest_spread(session)))


def robust_scale(session: Session, starts: list[Tensor], plan: RobustPlan) -> float:
    r"""Return gamma for robust k-means, measured after `STEPS` iterations of it.

    $\gamma = k / \sum_i w_i (r^2 - \lVert x_i - c \rVert^2)_+$, where c is the nearest center and
    r the radius of its cluster that holds `COUNTED` of its points. With this gamma, sparsemax
    gives weight to just these points in a cluster of mean size. With soft-max, k is replaced by the
    sum of all $w_i$, because its weights do not depend on the number of points. The sum is
    measured at the start where it is smallest.
    """
    least, dtype, results = _smallest_spread(session), session.layout.dtype, []
    for centers in starts:
        session.forget()
        for _ in range(STEPS):
            seen = centers.to(dtype)
            gamma = _measure_gamma(session, seen, plan, least)
            step = replace(plan, inverse_temperature=gamma).step(session, seen, 0)
            centers = apply_update(step.update, centers)
        results.append(_measure_gamma(session, centers.to(dtype), plan, least))
    return max(results)  # gamma falls with the sum, so this is the start with the smallest one


@dataclass(frozen=True)
class SumWithinRadii(SumFold):
    """The sum of w (r^2 - d^2)_+, r being the radius of a point's cluster.

    Precondition: `NearestDistances` has run; reads labels and distances.
    """

    squared_radii: Tensor  # (k,)

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        inside = self.squared_radii[block.labels.long()] - block.distances
        return (weighted_sum(inside.clamp(min=0), block.weights),)


def _measure_gamma(session: Session, centers: Tensor, plan: RobustPlan, least: float) -> float:
    """Return gamma for robust k-means at these centers; see `robust_scale`.

    least: lower bound of the sum that gamma is inverse to.
    """
    _, masses = session.fold(NearestDistances(centers))
    squared_radii = find_radii(session, target_masses(masses, COUNTED), centers.dtype)
    spread = max(session.fold(SumWithinRadii(squared_radii))[0].item(), least)
    if plan.activation == "sparsemax":
        return _ratio(len(centers) / session.layout.weight_unit, spread)
    return _ratio(masses.sum().item(), spread)


def _smallest_spread(session: Session) -> float:
    """Return the lower bound of a spread: `_SMALLEST` times the sum of w |x|^2."""
    return _SMALLEST * session.fold(Moments())[0].item()


def _ratio(numerator: float, spread: float) -> float:
    """Return numerator / spread, made finite and positive; 1 if there is no spread."""
    if spread == 0:  # all points are equal
        return 1.0
    return min(max(numerator / spread, sys.float_info.min), sys.float_info.max)
