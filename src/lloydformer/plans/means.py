"""Lloyd's algorithm and spherical k-means: one fold of sums and masses."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.plans.assign import NearestCosines, NearestDistances, NearestSums
from lloydformer.plans.contract import (
    Empties,
    FinalAssignment,
    IterationsResult,
    Plan,
    Step,
    StopsOn,
    Sums,
)
from lloydformer.plans.session import Columns, Session, Task


@dataclass(frozen=True)
class LloydIterations(Task):
    """Lloyd's iterations in one call, with the stop rule; returns an `IterationsResult`.

    An engine fills an empty cluster by the farthest point (`Rules.empty` is "farthest", and
    `Plan.empties` "move"), or stops before that iteration (`IterationsResult.empty`).

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The initial centers, in float64.
    tolerance : float
        Stop when the sum of squared shifts of the centers is at most this.
    max_iter : int
        Maximum number of iterations of the call; an engine may return earlier.
    square : float
        The sum of w |x|^2.
    unit : float
        Factor of the objective: 0.5 for directions, otherwise 1.
    """

    centers: Tensor
    tolerance: float
    max_iter: int
    square: float
    unit: float
    writes: ClassVar[Columns] = ("labels", "previous")
    writes_from: ClassVar[Columns] = ("previous",)

    def objective(self, change: float) -> float:
        """Return the objective, from the sum of w (|c|^2 - 2 x c)."""
        # Kernels compare distances without |x|^2, which does not change the nearest center.
        # Rounding may take the sum just below 0.
        return max(self.square + change, 0.0) * self.unit


@dataclass(frozen=True)
class MeansPlan(Plan):
    """Each center moves to the mean of its points (alg:lloyds, alg:lloyds-sphere).

    With `directions` the points are unit vectors and so are the means: spherical k-means, whose
    objective, the sum of w (1 - cosine), is half the sum of squared distances.
    """

    directions: bool = False
    # The sum of w |x|^2, from which the objective is computed without another fold.
    square: float = field(default=0.0, repr=False)
    stops_on: ClassVar[StopsOn] = "labels"
    empties: ClassVar[Empties] = "move"

    def with_square_sum(self, square: float) -> "MeansPlan":
        return replace(self, square=square)

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        # sum w |x - c|^2 = sum w |x|^2 - 2 sum_j s_j c_j + sum_j m_j |c_j|^2, s_j and m_j being the
        # sums and masses that the new centers need anyway.
        sums, masses, changed = session.fold(NearestSums(centers))
        exact = centers.double()
        squares = (masses * torch.linalg.vecdot(exact, exact)).sum()
        inertia = self.square - 2 * (sums * exact).sum() + squares
        return Step(Sums(sums, masses), inertia.clamp(min=0) * self._unit, changed)

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        return session.run(LloydIterations(centers, tolerance, max_iter, self.square, self._unit))

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        # By differences here, not by the identity of `step`: it cancels where points lie far from
        # the origin, and this number is the one that users compare.
        fold = NearestCosines if self.directions else NearestDistances
        squares, masses = session.fold(fold(centers, returned))
        inertia, *weights = torch.cat([squares[None], masses.clamp(min=0)]).tolist()
        return FinalAssignment(inertia * self._unit, inertia * self._unit, tuple(weights))

    @property
    def _unit(self) -> float:
        return 0.5 if self.directions else 1.0
