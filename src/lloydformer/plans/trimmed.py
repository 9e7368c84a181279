"""Trimmed k-means: distances, then each cluster's radius, then the sums within it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.plans.assign import Measure, count_changed, masses_of
from lloydformer.plans.contract import Adding, Block, Final, Plain, Run, Step, total
from lloydformer.plans.means import mean
from lloydformer.plans.selection import holding, radii

_PART = 1 << 18
"""Labels that are changed together, so that it takes no memory worth the name."""


def nearest(labels: Tensor) -> Tensor:
    """The cluster of each point's nearest center: trimmed points are labelled -1 - label."""
    return torch.where(labels < 0, -1 - labels, labels)


def untrim_(labels: Tensor) -> Tensor:
    """The same in place."""
    for part in torch.split(labels, _PART):
        part.copy_(nearest(part))
    return labels


@dataclass(frozen=True)
class Within(Adding):
    """Sums over the points within their cluster's radius; the others are labelled -1 - label."""

    radius: Tensor

    def map(self, block: Block) -> tuple[Tensor, ...]:
        k, labels = len(self.radius), block.labels.long()
        kept = block.distances <= self.radius[labels]
        weights = kept.double() if block.weights is None else kept * block.weights.double()
        sums = block.rows.sums(labels, k, weights)
        objective = total(block.distances, weights)
        block.labels.copy_(torch.where(kept, labels, -1 - labels))
        changed = count_changed(block)
        block.before.copy_(block.labels)
        return sums, masses_of(labels, weights, k), objective, changed


@dataclass(frozen=True)
class Trimmed(Plain):
    """Each center moves to the mean of its nearest points, `keep` of them by weight."""

    keep: float = 0.95
    stops_on = "labels"
    empties = "copy"
    directions = False

    def step(self, run: Run, centers: Tensor, iteration: int) -> Step:
        _, masses = run(Measure(centers))
        radius = radii(run, holding(masses, self.keep), centers.dtype)
        sums, kept, objective, changed = run(Within(radius))
        return Step(sums, kept, objective.item(), int(changed))

    def place(self, step: Step, centers: Tensor) -> Tensor:
        return mean(step, centers)

    def finish(self, run: Run, centers: Tensor) -> Final:
        objective = self.step(run, centers, 0).objective
        return Final(objective, objective)
