"""Robust k-means: distances, then each cluster's threshold, then the weighted sums."""

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.clusters import LOWEST
from lloydformer.plans.assign import NearestDistances, cluster_masses, count_label_changes
from lloydformer.plans.contract import IterationsResult, Plan, Step, Sums
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, Task, weighted_sum
from lloydformer.plans.trimmed import find_radii, target_masses


def _scores(inverse_temperature: float, distances: Tensor) -> Tensor:
    """Return -gamma d^2 in float64, and not below `LOWEST`."""
    return (-inverse_temperature * distances.double()).clamp(min=LOWEST)


def _weights(block: PointBlock) -> Tensor:
    """Return the weights of a block's points (m,) in float64, 1 where none are given."""
    ones = torch.ones(block.size, dtype=torch.float64, device=block.labels.device)
    return ones if block.weights is None else block.weights.double()


@dataclass(frozen=True)
class HighestScores:
    """The best score -gamma d^2 of each cluster, and the mass that attains it."""

    inverse_temperature: float
    n_clusters: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        z = _scores(self.inverse_temperature, block.distances)
        weights, labels = _weights(block), block.labels.long()
        best = z.new_full((self.n_clusters,), -math.inf)
        # Points without weight must not set the maximum: a cluster's sums would be 0/0.
        best.scatter_reduce_(0, labels, torch.where(weights > 0, z, -math.inf), "amax")
        return best, cluster_masses(labels, weights * (z == best[labels]), self.n_clusters)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        best = torch.maximum(first[0], second[0])
        # Masses count only where a block attains the common maximum.
        return best, (first[0] == best) * first[1] + (second[0] == best) * second[1]


@dataclass(frozen=True)
class SumsAboveThreshold(SumFold):
    """For each cluster, the mass and the weighted score of its points above its threshold."""

    inverse_temperature: float
    threshold: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        z = _scores(self.inverse_temperature, block.distances)
        labels, k = block.labels.long(), len(self.threshold)
        weights = _weights(block) * (z > self.threshold[labels])
        return cluster_masses(labels, weights, k), cluster_masses(labels, weights * z, k)


@dataclass(frozen=True)
class ThresholdSearch(Task):
    """The thresholds (k,) that `find_thresholds` returns, in one call.

    Precondition: `NearestDistances` has run; reads labels and distances.
    """

    inverse_temperature: float
    n_clusters: int

    writes: ClassVar[Columns] = ()


@dataclass(frozen=True)
class RobustIterations(Task):
    """Iterations with the weights of sparsemax in one call; returns an `IterationsResult`.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The initial centers, in float64.
    inverse_temperature : float
        gamma of the scores -gamma d^2.
    tolerance : float
        Stop when the sum of squared shifts of the centers is at most this.
    max_iter : int
        Maximum number of iterations of the call.
    """

    centers: Tensor
    inverse_temperature: float
    tolerance: float
    max_iter: int
    writes: ClassVar[Columns] = ("labels", "previous", "distances")


def find_thresholds(session: Session, inverse_temperature: float, n_clusters: int) -> Tensor:
    """Return sparsemax's tau of each cluster, for which the sum of w (z - tau)_+ is 1.

    It runs Michelot's steps from a lower bound: each solves for tau with the points above the last
    tau, which rises until these points stay the same.
    """
    found = session.run(ThresholdSearch(inverse_temperature, n_clusters))
    if found is not None:
        return found
    best, at_best = session.fold(HighestScores(inverse_temperature, n_clusters))
    count, score = session.fold(
        SumsAboveThreshold(inverse_temperature, torch.full_like(best, -math.inf))
    )
    # Both are lower bounds of tau: all points are above it, or only those with the best score. The
    # larger one saves steps; 3 to 12 folds are needed in all.
    tau = torch.maximum((score - 1) / count, best - 1 / at_best)
    while True:
        mass, score = session.fold(SumsAboveThreshold(inverse_temperature, tau))
        # The maximum holds against rounding: in exact arithmetic tau never falls. A cluster without
        # points above tau has no mass, and keeps tau.
        following = torch.where(mass > 0, torch.maximum((score - 1) / mass, tau), tau)
        if torch.equal(mass, count) or torch.equal(following.nan_to_num(), tau.nan_to_num()):
            return following
        tau, count = following, mass


@dataclass(frozen=True)
class RobustSums(SumFold):
    """Sums with the weights that the activation gives to each cluster's own points.

    Precondition: `NearestDistances` has run; reads labels and distances.
    """

    weigh: "SparsemaxWeights | SoftmaxWeights"
    n_clusters: int

    writes: ClassVar[Columns] = ("previous",)
    writes_from: ClassVar[Columns] = ("labels",)

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        labels = block.labels.long()
        weights = _weights(block) * self.weigh(block.distances.double(), labels)
        sums = block.rows.sums(labels, self.n_clusters, weights)
        objective = weighted_sum(block.distances, block.weights)
        changed = count_label_changes(block)
        return sums, cluster_masses(labels, weights, self.n_clusters), objective, changed


@dataclass(frozen=True)
class SparsemaxWeights:
    """The weights (z - tau)_+ with z = -gamma d^2.

    Attributes
    ----------
    inverse_temperature : float
        gamma.
    threshold : Tensor of shape (k,)
        tau of each cluster.
    """

    inverse_temperature: float
    threshold: Tensor

    def __call__(self, distances: Tensor, labels: Tensor) -> Tensor:
        z = _scores(self.inverse_temperature, distances)
        return (z - self.threshold[labels]).clamp(min=0)


@dataclass(frozen=True)
class SoftmaxWeights:
    """The weights exp(z - best) with z = -gamma d^2, within a radius; 0 outside.

    Attributes
    ----------
    inverse_temperature : float
        gamma.
    best : Tensor of shape (k,)
        The largest z of each cluster.
    radius : Tensor of shape (k,)
        The squared radius of each cluster.
    """

    inverse_temperature: float
    best: Tensor
    radius: Tensor

    def __call__(self, distances: Tensor, labels: Tensor) -> Tensor:
        weights = (_scores(self.inverse_temperature, distances) - self.best[labels]).exp()
        return weights * (distances <= self.radius[labels])


@dataclass(frozen=True)
class RobustPlan(Plan):
    """Each center moves to a mean of its points in which far ones weigh less (alg:rob-kmeans).

    Attributes
    ----------
    inverse_temperature : float
        gamma, by which squared distances are multiplied.
    activation : {"sparsemax", "softmax"}
        Turns the scores -gamma d^2 of a cluster's own points into their weights.
    m : int or None
        For "softmax": only the m nearest points of a cluster count; None: all of them.
    """

    inverse_temperature: float = 0.01
    activation: str = "sparsemax"
    m: int | None = None
    stops_on = "shift"
    empties = "copy"

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        _, masses = session.fold(NearestDistances(centers))
        sums, weights, objective, changed = session.fold(
            RobustSums(self._weighting(session, masses, centers.dtype), len(centers))
        )
        # An empty cluster must have mass 0 exactly, by which the rules find it.
        return Step(Sums(sums, torch.where(masses > 0, weights, 0.0)), objective, changed)

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        if self.activation != "sparsemax":
            return None
        gamma = self._in_units(session.layout.weight_unit)
        return session.run(RobustIterations(centers, gamma, tolerance, max_iter))

    def _in_units(self, unit: float) -> float:
        """Return the inverse temperature of sparsemax, for weights in multiples of a unit.

        Scores z with weights u w have the threshold of scores u z with weights w, over u.
        """
        # A product beyond float64 is cut: infinity times a distance of 0 would be NaN.
        return min(self.inverse_temperature * unit, sys.float_info.max)

    def _weighting(
        self, session: Session, masses: Tensor, dtype: torch.dtype
    ) -> "SparsemaxWeights | SoftmaxWeights":
        """Return the weights of the points for the labels and distances of the session."""
        gamma, k, unit = self.inverse_temperature, len(masses), session.layout.weight_unit
        if self.activation == "sparsemax":
            gamma = self._in_units(unit)
            return SparsemaxWeights(gamma, find_thresholds(session, gamma, k))
        # The best score of each cluster is subtracted, so that exp is 1 for at least one point.
        best, _ = session.fold(HighestScores(gamma, k))
        squared_radii = torch.full_like(best, math.inf)
        if self.m is not None:
            most = masses.clamp(max=self.m / unit)
            squared_radii = find_radii(session, target_masses(most, 1.0), dtype).double()
        return SoftmaxWeights(gamma, best, squared_radii)
