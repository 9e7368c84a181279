"""Many problems as tensors (b, n, d), for the loop that every fit shares."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.contract import Plan, Step
from lloydformer.solving.batch.steps import Assigned, DenseProblems, assign, own_distances, scores


@dataclass
class TensorProblems:
    """Problems in memory, with the labels of their last iteration."""

    plan: Plan
    data: DenseProblems
    last: Assigned | None = field(default=None)

    def step(self, centers: Float[Tensor, "b k d"], iteration: int) -> Step:
        before = self.last
        self.last = now = assign(self.plan, self.data, centers, iteration)
        return Step(now.update, now.objective, self._changed(before, now))

    def _changed(self, before: Assigned | None, now: Assigned) -> Int[Tensor, " b"]:
        """Points with weight whose label or trimming differs from the iteration before."""
        there = self.data.weights > 0
        if before is None:
            return there.sum(dim=1)
        differs = before.labels != now.labels
        if before.trimmed is not None and now.trimmed is not None:
            differs = differs | (before.trimmed != now.trimmed)
        return (differs & there).sum(dim=1)

    def farthest(self, centers: Float[Tensor, "b k d"], count: int) -> FarthestPoints:
        assert self.last is not None
        labels, weights = self.last.labels, self.data.weights
        away = own_distances(self.data, centers, labels).masked_fill(weights <= 0, -1.0)
        rows = away.sort(dim=1, descending=True, stable=True).indices[:, :count]
        return FarthestPoints(
            away.gather(1, rows), rows, labels.gather(1, rows), self.data.take(rows),
            weights.gather(1, rows),
        )  # fmt: skip

    def only(self, going: Int[Tensor, " c"]) -> "TensorProblems":
        assert self.last is not None
        trimmed = self.last.trimmed
        kept = Assigned(
            self.last.update, self.last.objective[going], self.last.labels[going],
            None if trimmed is None else trimmed[going],
        )  # fmt: skip
        return TensorProblems(self.plan, self.data[going], kept)

    def rows_of(self, centers: Float[Tensor, "b k d"]) -> Int[Tensor, "b k"] | None:
        """The rows that these centers are; None if one of them is no row of its problem."""
        squares = torch.linalg.vecdot(self.data.points, self.data.points).unsqueeze(-1)
        rows = (scores(self.data, centers) + squares).argmin(dim=1)
        return rows if torch.equal(self.data.take(rows), centers) else None
