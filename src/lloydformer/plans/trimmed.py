"""Trimmed k-means: distances, then each cluster's radius, then the sums within it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.clusters import add_by_label
from lloydformer.plans.assign import NearestDistances, cluster_masses, count_label_changes
from lloydformer.plans.contract import FinalAssignment, Plan, Step, Sums
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, weighted_sum

# Bits of a squared distance that one fold counts: its histogram has 2^8 numbers for each cluster,
# and 4 (float32) or 8 (float64) folds find the exact radius. Fewer folds would need more memory.
_DIGIT = 8
_INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}


def target_masses(masses: Tensor, keep: float) -> Tensor:
    """Return a fraction of each mass, less 1e-12 of it, so that rounding does not add a point.

    Without weights these are the ceil(keep * m) nearest points. The authors' code keeps those
    strictly below an interpolated quantile, often one point fewer (docs/errata.md).
    """
    return keep * masses * (1 - 1e-12)


@dataclass(frozen=True)
class DistanceHistogram(SumFold):
    """Masses (k, 256) by cluster and next digit of the squared distance.

    It counts the points whose squared distance begins, bit by bit, with the prefix of their
    cluster. Precondition: `NearestDistances` has run; reads labels and distances.

    Attributes
    ----------
    prefix : Tensor of shape (k,)
        The digits of each squared radius that are known already.
    shift : int
        Number of bits after the digit that is counted.
    """

    prefix: Tensor
    shift: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        # Floating-point numbers that are not negative have the order of their bits as integers.
        labels = block.labels.long()
        bits = block.distances.view(_INTEGERS[block.distances.dtype]).long() >> self.shift
        agree = (bits >> _DIGIT) == self.prefix[labels]
        slots = (labels << _DIGIT) + (bits & ((1 << _DIGIT) - 1))
        weights = agree.double() if block.weights is None else agree * block.weights.double()
        size = len(self.prefix) << _DIGIT
        return (add_by_label(weights, slots, size).view(-1, 1 << _DIGIT),)


def find_radii(session: Session, targets: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the smallest squared radii (k,) within which a cluster's mass reaches its target.

    It is a radix selection: each fold fixes the next digit of all radii, from the highest one.
    """
    prefix = torch.zeros(len(targets), dtype=torch.long, device=targets.device)
    missing = targets.clone()
    for shift in range(torch.finfo(dtype).bits - _DIGIT, -1, -_DIGIT):
        (histogram,) = session.fold(DistanceHistogram(prefix, shift))
        reached = histogram.cumsum(dim=1)
        # Clamped: rounding may leave the target just above the mass of all points.
        digit = (reached < missing[:, None]).sum(dim=1).clamp(max=(1 << _DIGIT) - 1)
        before = reached.gather(1, digit[:, None]) - histogram.gather(1, digit[:, None])
        missing = missing - before[:, 0]
        prefix = (prefix << _DIGIT) + digit
    return prefix.to(_INTEGERS[dtype]).view(dtype)


@dataclass(frozen=True)
class TrimmedSums(SumFold):
    """Sums over the points within their cluster's radius; the others are marked as trimmed.

    The summary is sums (k, d), masses (k,), the objective, and the number of changed points.
    Precondition: `NearestDistances` has run; reads labels and distances.

    Attributes
    ----------
    radius : Tensor of shape (k,)
        The squared radius of each cluster.
    """

    radius: Tensor  # squared; it has this name in checkpoints

    writes: ClassVar[Columns] = ("previous", "trimmed")
    writes_from: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, labels = len(self.radius), block.labels.long()
        kept = block.distances <= self.radius[labels]
        weights = kept.double() if block.weights is None else kept * block.weights.double()
        sums = block.rows.sums(labels, k, weights)
        objective = weighted_sum(block.distances, weights)
        # The kept set must settle as well as the labels. `trimmed` is still that of the last
        # iteration, so a point changed if it was trimmed then and is kept now, or the reverse.
        changed = count_label_changes(block, also=block.trimmed == kept)
        block.trimmed.copy_(~kept)
        return sums, cluster_masses(labels, weights, k), objective, changed


@dataclass(frozen=True)
class TrimmedPlan(Plan):
    """Each center moves to the mean of its nearest points (alg:trim-kmeans).

    keep: the share of a cluster's weight that these points have.
    """

    keep: float = 0.95
    stops_on = "labels"
    empties = "copy"
    has_plain_inertia = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        return self._step(session, NearestDistances(centers))

    def _step(self, session: Session, nearest: NearestDistances) -> Step:
        _, masses = session.fold(nearest)
        squared_radii = find_radii(session, target_masses(masses, self.keep), nearest.centers.dtype)
        sums, kept, objective, changed = session.fold(TrimmedSums(squared_radii))
        return Step(Sums(sums, kept), objective, changed)

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        objective = self._step(session, NearestDistances(centers, returned)).objective.item()
        return FinalAssignment(objective, objective)
