"""The folds that every plan begins or ends with: nearest centers, farthest points, moments."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.numerics.accumulate import add_by_label
from lloydformer.plans.contract import Adding, Block, total


def masses_of(labels: Tensor, weights: Tensor | None, n_clusters: int) -> Tensor:
    """The weight in each cluster, in float64."""
    if weights is None:
        return torch.bincount(labels, minlength=n_clusters).double()
    return add_by_label(weights.double(), labels, n_clusters)


def count_changed(block: Block) -> Tensor:
    """How many points with weight have another label than in the last iteration."""
    changed = block.labels != block.before
    if block.weights is not None:
        changed &= block.weights > 0
    return changed.sum()


@dataclass(frozen=True)
class Nearest(Adding):
    """Labels every point by its nearest center, and adds up points and weights by label."""

    centers: Tensor

    def map(self, block: Block) -> tuple[Tensor, ...]:
        k = len(self.centers)
        labels = block.rows.scores(self.centers).min(dim=1).indices
        block.labels.copy_(labels)
        sums = block.rows.sums(labels, k, block.weights)
        masses, changed = masses_of(labels, block.weights, k), count_changed(block)
        block.before.copy_(block.labels)
        return sums, masses, changed


@dataclass(frozen=True)
class Measure(Adding):
    """Labels every point by its nearest center and keeps its squared distance to it."""

    centers: Tensor

    def map(self, block: Block) -> tuple[Tensor, ...]:
        labels = block.rows.scores(self.centers).min(dim=1).indices
        block.labels.copy_(labels)
        block.distances.copy_(block.rows.squared_distances(self.centers, labels))
        masses = masses_of(labels, block.weights, len(self.centers))
        return total(block.distances, block.weights), masses


@dataclass(frozen=True)
class Cosines(Measure):
    """Measures unit vectors; a cluster's mass is the sum of w cos(x, c), not of w.

    That is the length of the sum of its points, where its center is the direction of that sum.
    """

    def map(self, block: Block) -> tuple[Tensor, ...]:
        inertia, masses = super().map(block)
        spread = block.distances.double()
        if block.weights is not None:
            spread = spread * block.weights
        return inertia, masses - add_by_label(spread, block.labels.long(), len(self.centers)) / 2


@dataclass(frozen=True)
class Moments(Adding):
    """The sum of w |x|^2; and of the points with weight their number, sum and sum of squares.

    The latter are for scikit-learn's tolerance, which does not weigh.
    """

    def map(self, block: Block) -> tuple[Tensor, ...]:
        everything = torch.zeros(len(block.labels), dtype=torch.long, device=block.labels.device)
        there = None if block.weights is None else (block.weights > 0).double()
        squares = block.rows.squared_norms()
        return (
            total(squares, block.weights),
            masses_of(everything, there, 1)[0],
            total(squares, there),
            block.rows.sums(everything, 1, there)[0],
        )


@dataclass(frozen=True)
class Farthest:
    """The m points that are farthest from their centers, by (distance, row); weight 0 never."""

    centers: Tensor
    m: int

    def map(self, block: Block) -> tuple[Tensor, Tensor]:
        away = block.rows.squared_distances(self.centers, block.labels.long()).double()
        if block.weights is not None:
            away = away.masked_fill(block.weights <= 0, -1.0)
        order = away.sort(descending=True, stable=True).indices[: self.m]
        return away[order], order + block.start

    def merge(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        away = torch.cat([first[0], second[0]])
        rows = torch.cat([first[1], second[1]])
        order = away.sort(descending=True, stable=True).indices[: self.m]
        return away[order], rows[order]
