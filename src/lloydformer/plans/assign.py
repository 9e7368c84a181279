"""Folds that every plan shares: nearest centers, farthest points, moments."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.clusters import add_by_label
from lloydformer.plans.session import Columns, PointBlock, SumFold, weighted_sum


def cluster_masses(labels: Tensor, weights: Tensor | None, n_clusters: int) -> Tensor:
    """Return the weight in each cluster, in float64."""
    # Without weights bincount counts in integers, which is faster and does not depend on order.
    if weights is None:
        return torch.bincount(labels, minlength=n_clusters).double()
    return add_by_label(weights.double(), labels, n_clusters)


def count_label_changes(block: PointBlock, also: Tensor | None = None) -> Tensor:
    """Count points with weight whose label changed since the last iteration; remember the labels.

    also: points (m,) that count as changed for another reason.
    """
    # Points without weight cannot move a center, so they do not keep a fit from stopping.
    changed = block.labels != block.previous
    if also is not None:
        changed |= also
    if block.weights is not None:
        changed &= block.weights > 0
    block.previous.copy_(block.labels)
    return changed.sum()


@dataclass(frozen=True)
class NearestSums(SumFold):
    """Label every point by its nearest center; sums (k, d), masses (k,) and changed labels."""

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "previous")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k = len(self.centers)
        labels = block.rows.nearest(self.centers)
        block.labels.copy_(labels)
        sums = block.rows.sums(labels, k, block.weights)
        return sums, cluster_masses(labels, block.weights, k), count_label_changes(block)


@dataclass(frozen=True)
class NearestDistances(SumFold):
    """Label every point by its nearest center, and store its squared distance to it.

    The summary is the sum of w d^2 and the masses (k,).

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In the coordinates and the precision of the rows.
    returned : Tensor of shape (k, d) or None
        The centers that users get, of which `centers` are rounded ones (`Layout.to_exact_units`).
        Labels and distances are then those of `returned`, by differences in float64 wherever
        rounding could decide.
    """

    centers: Tensor
    returned: Tensor | None = None

    writes: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows = block.rows
        # By differences, not from the scores |c|^2 - 2 x c, which cancel for points near a center.
        if self.returned is None:
            labels = rows.nearest(self.centers)
            squares = rows.squared_distances(self.centers, labels)
        else:
            labels = rows.nearest_exactly(self.centers, self.returned)
            squares = rows.exact_squares(self.returned, labels)
        block.labels.copy_(labels)
        block.distances.copy_(squares)
        masses = cluster_masses(labels, block.weights, len(self.centers))
        return weighted_sum(squares, block.weights), masses


@dataclass(frozen=True)
class NearestCosines(NearestDistances):
    """`NearestDistances` for unit vectors: a cluster's mass is the sum of w cos(x, c).

    That is the length of the sum of its points, if its center is the direction of that sum.
    """

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        inertia, masses = super().map(block)
        spread = block.distances.double()
        if block.weights is not None:
            spread = spread * block.weights
        return inertia, masses - add_by_label(spread, block.labels.long(), len(self.centers)) / 2


@dataclass(frozen=True)
class Moments(SumFold):
    """The sum of w |x|^2; and for points with weight: their number, sum of |x|^2, and sum (d,).

    The last three give scikit-learn's tolerance, which ignores the weights themselves.
    """

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        everything = torch.zeros(block.size, dtype=torch.long, device=block.labels.device)
        there = None if block.weights is None else (block.weights > 0).double()
        # In float64: `MeansPlan.step` subtracts squares of the centers from this sum. What is left
        # may be a millionth of it, if columns lie on a line or a row is far away.
        squares = block.rows.squared_norms_in_float64()
        return (
            weighted_sum(squares, block.weights),
            cluster_masses(everything, there, 1)[0],
            weighted_sum(squares, there),
            block.rows.sums(everything, 1, there)[0],
        )


# The binary exponents that `torch.frexp` returns for positive numbers in float64 are above
# `_LOWEST`, which is used for zeros, and at most 1024.
_LOWEST, _N_EXPONENTS = -1074, 1074 + 1024 + 1


@dataclass(frozen=True)
class NormExponents(SumFold):
    """Count the points with weight by the binary exponent of |x|^2; returns (2099,) in float64.

    Counts are whole numbers, so the result is the same for every order and cut of the rows.
    """

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        squares = block.rows.squared_norms().double()
        exponents = torch.where(squares > 0, torch.frexp(squares).exponent, _LOWEST).long()
        there = None if block.weights is None else (block.weights > 0).double()
        return (cluster_masses(exponents - _LOWEST, there, _N_EXPONENTS),)

    @staticmethod
    def median(counts: Tensor) -> float:
        """Return the smallest power of two above the median of |x|^2, or 0 if that is 0."""
        reached = counts.cumsum(dim=0)
        at = int((reached < reached[-1] / 2).sum())
        return 0.0 if at == 0 else 2 * math.ldexp(0.5, at + _LOWEST)


@dataclass(frozen=True)
class FarthestPoints:
    """The m points (or fewer) that are farthest from their own centers, by (distance, row).

    Attributes
    ----------
    distances : Tensor of shape (*b, m)
        Squared distances, descending; not above 0 where there is no further point.
    rows, labels : Tensor of shape (*b, m)
        Global rows, and the clusters that the points belong to.
    points : Tensor of shape (*b, m, d)
        In float64.
    weights : Tensor of shape (*b, m)
        In float64.
    """

    distances: Tensor
    rows: Tensor
    labels: Tensor
    points: Tensor
    weights: Tensor

    def take(self, order: Tensor) -> "FarthestPoints":
        """Return some of one problem's points."""
        return FarthestPoints(*(value[order] for value in vars(self).values()))


@dataclass(frozen=True)
class Farthest:
    """The m points farthest from their own centers; points without weight never.

    Precondition: labels belong to these centers.
    """

    centers: Tensor
    m: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> FarthestPoints:
        labels = block.labels.long()
        # In float64, rounded once: engines that add up in another order find the same points.
        exact = block.rows.squared_distances(self.centers.double(), labels)
        away = exact.to(self.centers.dtype).double()
        weights = torch.ones_like(away) if block.weights is None else block.weights.double()
        away = away.masked_fill(weights <= 0, -1.0)
        # Stable, so that equal distances keep the order of their rows on every engine.
        order = away.sort(descending=True, stable=True).indices[: self.m]
        points = block.rows.take(order).double()
        return FarthestPoints(
            away[order], order + block.start, labels[order], points, weights[order]
        )

    def merge(self, first: FarthestPoints, second: FarthestPoints) -> FarthestPoints:
        pairs = zip(vars(first).values(), vars(second).values(), strict=True)
        both = FarthestPoints(*(torch.cat(pair) for pair in pairs))
        return both.take(both.distances.sort(descending=True, stable=True).indices[: self.m])
