"""Trimmed k-means: distances, then each cluster's radius, then the sums within it."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lloydformer.plans.assign import Measure, count_changed, masses_of
from lloydformer.plans.contract import Empties, Final, Step, StepByStep, StopsOn, Sums
from lloydformer.plans.selection import holding, radii
from lloydformer.plans.session import Adding, Columns, PointBlock, Session, total


@dataclass(frozen=True)
class Within(Adding):
    """Sums over the points within their cluster's radius; the others are marked as trimmed.

    Precondition: `Measure` has run; reads labels and distances.
    """

    radius: Tensor

    writes: ClassVar[Columns] = ("previous", "trimmed")
    writes_from: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, labels = len(self.radius), block.labels.long()
        kept = block.distances <= self.radius[labels]
        weights = kept.double() if block.weights is None else kept * block.weights.double()
        sums = block.rows.sums(labels, k, weights)
        objective = total(block.distances, weights)
        changed = count_changed(block, also=block.trimmed == kept)
        block.trimmed.copy_(~kept)
        return sums, masses_of(labels, weights, k), objective, changed


@dataclass(frozen=True)
class TrimmedPlan(StepByStep):
    """Each center moves to the mean of its nearest points, `keep` of them by weight."""

    keep: float = 0.95
    stops_on: ClassVar[StopsOn] = "labels"
    empties: ClassVar[Empties] = "copy"
    directions: ClassVar[bool] = False
    counts_all: ClassVar[bool] = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        _, masses = session.fold(Measure(centers))
        radius = radii(session, holding(masses, self.keep), centers.dtype)
        sums, kept, objective, changed = session.fold(Within(radius))
        return Step(Sums(sums, kept), objective, changed)

    def finish(self, session: Session, centers: Tensor) -> Final:
        objective = self.step(session, centers, 0).objective.item()
        return Final(objective, objective)
