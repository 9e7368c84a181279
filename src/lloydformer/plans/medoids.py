"""Randomised k-medoids: one fold of the largest perturbed score and its row."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.noise import gumbel
from lloydformer.plans.assign import count_label_changes
from lloydformer.plans.contract import NewCenters, Plan, Step
from lloydformer.plans.session import Columns, PointBlock, Session, weighted_sum


@dataclass(frozen=True)
class MedoidDraw:
    """Draw for each center the row with the largest score plus noise, the lowest one on ties.

    The score is -|x - c|^2 + log w, less 2 separation for points of other clusters. Without a
    separation a cluster's own points come before all others. The summary is: whether a cluster has
    own points, the largest scores, their rows and points, the sum of w d^2 and the changed labels.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The centers that the scores are relative to.
    separation : float or None
        See above.
    seed : int
        Random seed of the noise.
    iteration : int
        Number of the iteration; each has other noise.
    """

    centers: Tensor
    separation: float | None
    seed: int
    iteration: int

    writes: ClassVar[Columns] = ("labels", "previous", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        scores = block.rows.scores(self.centers)
        labels = scores.min(dim=1).indices
        block.labels.copy_(labels)
        distances = scores.double() + block.rows.squared_norms().double()[:, None]  # (m, k)
        block.distances.copy_(distances.gather(1, labels[:, None])[:, 0].clamp(min=0))
        owned, best, chosen = self._best(block, labels, distances).values()
        return (
            owned,
            best,
            chosen + block.start,
            block.rows.take(chosen).double(),
            weighted_sum(block.distances, block.weights),
            count_label_changes(block),
        )

    def _best(self, block: PointBlock, labels: Tensor, distances: Tensor) -> dict[str, Tensor]:
        """Return for each center whether it owns a point, and the best score with its place."""
        k, device = len(self.centers), labels.device
        rows = torch.arange(block.start, block.start + len(labels), device=device)
        # Gumbel's trick: the largest of score + noise is a draw by soft-max of the scores. Noise is
        # a function of the global row, so that the cut into blocks does not matter.
        perturbed = gumbel(self.seed, self.iteration, "decoder_cross", k, rows) - distances.mT
        # log w makes a point of weight w as likely as w copies of it; weight 0 is never drawn.
        if block.weights is not None:
            perturbed = perturbed + block.weights.double().log()
        strange = labels != torch.arange(k, device=device)[:, None]  # (k, m): of other clusters
        # Without a separation other clusters are excluded, which is its limit. A cluster that owns
        # no point draws from all, as the circuit does.
        if self.separation is None:
            owned = (~strange & (perturbed > -torch.inf)).any(dim=1)
            perturbed = perturbed.masked_fill(strange & owned[:, None], -torch.inf)
        else:
            owned = torch.zeros(k, dtype=torch.bool, device=device)
            perturbed = perturbed - 2 * self.separation * strange.double()
        best = perturbed.max(dim=1)
        return {"owned": owned, "best": best.values, "chosen": best.indices}

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # A block with own points of the cluster beats one without; then the larger score. On ties
        # the first block stays, which has the lower row.
        better = (second[0] & ~first[0]) | ((second[0] == first[0]) & (second[1] > first[1]))
        best, row = (torch.where(better, second[i], first[i]) for i in (1, 2))
        point = torch.where(better[:, None], second[3], first[3])
        return first[0] | second[0], best, row, point, first[4] + second[4], first[5] + second[5]


@dataclass(frozen=True)
class NearestRows:
    """The nearest row with weight of each center, and its squared distance."""

    centers: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        squares = block.rows.squared_norms()[:, None]
        away = block.rows.scores(self.centers) + squares  # (m, k)
        if block.weights is not None:
            away = away.masked_fill(block.weights[:, None] == 0, torch.inf)
        least = away.min(dim=0)
        return least.values, least.indices + block.start

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # Strictly closer, so that the lower row stays on ties.
        closer = second[0] < first[0]
        return torch.where(closer, second[0], first[0]), torch.where(closer, second[1], first[1])


def match_rows(session: Session, centers: Tensor) -> Tensor | None:
    """Return the data rows that equal these centers; None if one of them is not a data row."""
    centers = centers.to(session.layout.dtype)
    _, rows = session.fold(NearestRows(centers))
    return rows if torch.equal(session.gather(rows), centers) else None


@dataclass(frozen=True)
class MedoidsPlan(Plan):
    """Each center moves to a point drawn near it (alg:rnd-kmeds).

    Attributes
    ----------
    separation : float or None
        How far a center avoids points of other clusters; see `MedoidDraw`.
    seed : int
        Random seed of the draws.
    """

    separation: float | None = 100.0
    seed: int = 0
    stops_on = "never"
    empties = "keep"
    draws_centers = True

    def with_seed(self, seed: int) -> "MedoidsPlan":
        return replace(self, seed=seed)

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        _, _, rows, points, objective, changed = session.fold(
            MedoidDraw(centers, self.separation, self.seed, iteration)
        )
        return Step(NewCenters(points, rows), objective, changed)
