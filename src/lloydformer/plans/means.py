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
    PlanDefaults,
    Step,
    StopsOn,
    Sums,
)
from lloydformer.plans.session import Columns, Session, Task


@dataclass(frozen=True)
class LloydIterations(Task):
    """Lloyd's iterations in one call, with stop rule and refill; an `IterationsResult`.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The start, in float64.
    tolerance : float
        Stop when the sum of squared shifts of the centers is not above it.
    max_iter : int
        Return after so many iterations at most; an engine may return earlier.
    square : float
        The sum of w |x|^2.
    unit : float
        Objectives are multiplied by it.
    """

    centers: Tensor
    tolerance: float
    max_iter: int
    square: float
    unit: float
    writes: ClassVar[Columns] = ("labels", "previous")
    writes_from: ClassVar[Columns] = ("previous",)

    def objective(self, change: float) -> float:
        """The objective, from the sum of w (|c|^2 - 2 x c)."""
        return max(self.square + change, 0.0) * self.unit


@dataclass(frozen=True)
class MeansPlan(PlanDefaults):
    """Each center moves to the mean of its points.

    With `directions` the points are unit vectors and so are the means: spherical k-means, whose
    objective, the sum of w (1 - cosine), is half the sum of squared distances.
    """

    directions: bool = False
    square: float = field(default=0.0, repr=False)
    """The sum of w |x|^2, from which the objective is computed without another fold."""
    stops_on: ClassVar[StopsOn] = "labels"
    empties: ClassVar[Empties] = "move"

    def with_square_sum(self, square: float) -> "MeansPlan":
        return replace(self, square=square)

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        sums, masses, changed = session.fold(NearestSums(centers))
        exact = centers.double()
        squares = (masses * torch.linalg.vecdot(exact, exact)).sum()
        inertia = self.square - 2 * (sums * exact).sum() + squares
        return Step(Sums(sums, masses), inertia.clamp(min=0) * self._unit, changed)

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        return session.run(LloydIterations(centers, tolerance, max_iter, self.square, self._unit))

    def finish(self, session: Session, centers: Tensor) -> FinalAssignment:
        squares, masses = session.fold(
            NearestCosines(centers) if self.directions else NearestDistances(centers)
        )
        inertia, *weights = torch.cat([squares[None], masses.clamp(min=0)]).tolist()
        return FinalAssignment(inertia * self._unit, inertia * self._unit, tuple(weights))

    @property
    def _unit(self) -> float:
        return 0.5 if self.directions else 1.0
