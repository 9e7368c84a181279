"""Splitting of clusters: folds that draw points by distance, and halve clusters at them."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.accumulate import add_by_label
from lloydformer.numerics.means import means_or
from lloydformer.numerics.noise import gumbel
from lloydformer.plans.assign import masses_of
from lloydformer.plans.session import Adding, Columns, PointBlock, Session

SHARPNESS = 2.0
"""Clusters are drawn with probability proportional to their error to this power."""
TIE = 1e-9
"""Gains and costs that differ by less than this fraction are equal."""


@dataclass(frozen=True)
class Draws:
    """The noise of a relocation: seed, layer, and number of draws for each split."""

    seed: int
    layer: int
    n_draws: int


@dataclass(frozen=True)
class Errors(Adding):
    """Store labels and distances by nearest center; for each cluster sums, mass and error."""

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, labels = len(self.centers), block.rows.scores(self.centers).min(dim=1).indices
        block.labels.copy_(labels)
        block.distances.copy_(block.rows.squared_distances(self.centers, labels))
        errors = add_by_label(_weighted(block.distances.double(), block), labels, k)
        sums = block.rows.sums(labels, k, block.weights)
        return sums, masses_of(labels, block.weights, k), errors


def _weighted(values: Tensor, block: PointBlock) -> Tensor:
    return values if block.weights is None else values * block.weights


@dataclass(frozen=True)
class Drawn:
    """For each chosen cluster and draw: the largest log w r + g, its row and its point.

    Precondition: `Errors` has run; reads labels and distances.
    """

    place: Tensor
    """For each cluster its place among the chosen ones, -1 for the others."""
    count: int
    draws: Draws
    head: str = "drawn"
    """Whose noise it is."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        places = self.place[block.labels.long()]
        rows = torch.arange(block.start, block.start + len(places), device=places.device)
        noise = gumbel(self.draws.seed, self.draws.layer, self.head, self.draws.n_draws, rows)
        scores = _weighted(block.distances.double(), block).log() + noise  # (draws, m)
        strange = places != torch.arange(self.count, device=places.device)[:, None, None]
        best = scores.masked_fill(strange, -torch.inf).max(dim=2)  # (count, draws)
        points = block.rows.take(best.indices.flatten()).double()
        return best.values, best.indices + block.start, points.view(*best.indices.shape, -1)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        later = second[0] > first[0]
        return (
            torch.where(later, second[0], first[0]),
            torch.where(later, second[1], first[1]),
            torch.where(later[..., None], second[2], first[2]),
        )


@dataclass(frozen=True)
class Halves(Adding):
    """Sums and masses of a cluster's points that are nearer to a point than to its center.

    Precondition: `Errors` has run; reads labels and distances. Sums are (count, draws, d).
    """

    place: Tensor
    points: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        parts = [self._half(block, point) for point in self.points.unbind(dim=1)]
        return tuple(torch.stack(part, dim=1) for part in zip(*parts, strict=True))

    def _half(self, block: PointBlock, points: Tensor) -> tuple[Tensor, ...]:
        """For one draw: sums and mass of the near half, numbers of points in both halves."""
        count, places = len(points), self.place[block.labels.long()]
        own, places = places >= 0, places.clamp(min=0)
        near = own & (block.rows.squared_distances(points, places) < block.distances)
        kept = _weighted(near.double(), block)
        there = own if block.weights is None else own & (block.weights > 0)
        return (
            block.rows.sums(places, count, kept),
            add_by_label(kept, places, count),
            add_by_label((there & near).double(), places, count),
            add_by_label((there & ~near).double(), places, count),
        )


def _first_best(gains: Tensor) -> tuple[Tensor, Tensor]:
    """The best draw of each cluster, the first one within a tie."""
    best, gain = torch.zeros_like(gains[:, 0], dtype=torch.long), gains[:, 0]
    for draw in range(1, gains.shape[1]):
        better = gains[:, draw] > (1 + TIE) * gain
        best, gain = torch.where(better, draw, best), torch.where(better, gains[:, draw], gain)
    return best, gain


def split(
    session: Session, known: tuple[Tensor, ...], n_moved: int, draws: Draws, old: Tensor
) -> Tensor:
    """The means of all clusters, with the drawn clusters split in two: (k + m, d).

    known: the summary of `Errors` for the centers `old`.
    """
    sums, masses, errors = known
    device = errors.device
    noise = gumbel(draws.seed, draws.layer, "grow", len(errors), torch.zeros(1, dtype=torch.long))
    scores = SHARPNESS * errors.log() + noise[:, 0].to(device)
    chosen = scores.sort(descending=True, stable=True).indices[:n_moved]
    place = torch.full((len(errors),), -1, device=device)
    place[chosen] = torch.arange(len(chosen), device=device)
    points = session.fold(Drawn(place, len(chosen), draws))[2]
    near, mass, n_near, n_rest = session.fold(Halves(place, points.to(old.dtype)))
    rest, other = sums[chosen, None] - near, masses[chosen, None] - mass
    apart = (near / mass[..., None] - rest / other[..., None]).square().sum(dim=-1)
    whole = (n_near > 0) & (n_rest > 0)
    gains = torch.where(whole, mass * other / masses[chosen, None] * apart, 0)
    best, gain = _first_best(gains)
    means = means_or(sums, masses, old.double())
    here = torch.arange(len(chosen), device=device), best
    near, rest = near[here] / mass[here][:, None], rest[here] / other[here][:, None]
    gained = gain > 0
    means[chosen[gained]] = rest[gained]
    return torch.cat([means, near[gained]])
