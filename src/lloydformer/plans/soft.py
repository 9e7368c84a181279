"""Soft k-means: one fold with a running maximum, so that no cluster becomes 0/0."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.clusters import log_shares, scaled_shares
from lloydformer.plans.assign import NearestDistances, count_label_changes
from lloydformer.plans.contract import FinalAssignment, IterationsResult, Plan, Step, Sums
from lloydformer.plans.session import Columns, PointBlock, Session, Task, weighted_sum


@dataclass(frozen=True)
class SoftSums:
    """Sums of w_i p_ij x_i and w_i p_ij, divided by the largest p_ij of each cluster.

    p_ij is the soft-max over j of -gamma |x_i - c_j|^2, w_i the weight of the point. The summary
    is the logarithm of the divisor (k,), sums (k, d), masses (k,), free energy, changed labels.
    """

    centers: Tensor
    inverse_temperature: float

    writes: ClassVar[Columns] = ("labels", "previous")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        scores = block.rows.scores(self.centers).double()  # (m, k)
        logs, free = log_shares(scores, self.inverse_temperature)
        weights = None if block.weights is None else block.weights.double()
        # Divided by the largest share of each cluster: a far cluster, whose shares all underflow,
        # would be 0/0 otherwise.
        level, shares = scaled_shares(logs, weights)
        energy = block.rows.squared_norms().double() + free
        block.labels.copy_(scores.argmin(dim=1))
        changed, sums = count_label_changes(block), block.rows.weighted_sums(shares)
        return level, sums, shares.sum(dim=0), weighted_sum(energy, block.weights), changed

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # As in an online soft-max: the larger level wins, and the sums of the other are scaled to
        # it.
        level = torch.maximum(first[0], second[0])
        one, two = (first[0] - level).exp(), (second[0] - level).exp()
        return (
            level,
            one[:, None] * first[1] + two[:, None] * second[1],
            one * first[2] + two * second[2],
            first[3] + second[3],
            first[4] + second[4],
        )


@dataclass(frozen=True)
class SoftIterations(Task):
    """Soft iterations in one call, with the stop rule; returns an `IterationsResult`.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The initial centers, in float64.
    inverse_temperature : float
        As in `SoftSums`.
    tolerance : float
        Stop when the sum of squared shifts of the centers is at most this.
    max_iter : int
        Maximum number of iterations of the call.
    """

    centers: Tensor
    inverse_temperature: float
    tolerance: float
    max_iter: int
    writes: ClassVar[Columns] = ("labels", "previous")


@dataclass(frozen=True)
class SoftPlan(Plan):
    """Each center moves to the mean of all points, weighted by their shares (alg:soft-kmeans).

    The objective is the free energy, -1/gamma times the sum of w log sum exp(-gamma d^2).
    """

    inverse_temperature: float = 1.0
    stops_on = "shift"
    empties = "keep"
    has_plain_inertia = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        _, sums, masses, energy, changed = session.fold(SoftSums(centers, self.inverse_temperature))
        return Step(Sums(sums, masses), energy, changed)

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        return session.run(SoftIterations(centers, self.inverse_temperature, tolerance, max_iter))

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        # The loop minimises the free energy; restarts are compared by the inertia of hard labels.
        free_energy = self.step(session, centers, 0).objective
        inertia = session.fold(NearestDistances(centers, returned))[0]
        found = torch.stack([inertia, free_energy])
        if not bool(found.isfinite().all()):
            raise ValueError(
                f"inverse_temperature: found {self.inverse_temperature:.2g}, and float64 cannot "
                "hold the free energy, which has its inverse as a factor; pass a larger one"
            )
        return FinalAssignment(*found.tolist())
