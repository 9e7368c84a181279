"""One relocation: clusters with large error are split, and the cheapest centers are removed."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.clusters import add_by_label, means_or
from lloydformer.numerics.noise import gumbel
from lloydformer.numerics.search_constants import REMOVAL_CANDIDATES, SPLIT_SHARPNESS, TIE
from lloydformer.plans.assign import NearestSums, cluster_masses
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, Task


@dataclass(frozen=True)
class NoiseDraws:
    """The noise of a relocation.

    Attributes
    ----------
    seed : int
        Random seed.
    layer : int
        Number of the layer; each has other noise.
    n_draws : int
        Number of points that are drawn for each split.
    """

    seed: int
    layer: int
    n_draws: int


@dataclass(frozen=True)
class ClusterErrors(SumFold):
    """Store labels and distances by nearest center; returns sums, mass and error of each cluster.

    The error of a cluster is its sum of w d^2.
    """

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, labels = len(self.centers), block.rows.nearest(self.centers)
        block.labels.copy_(labels)
        block.distances.copy_(block.rows.squared_distances(self.centers, labels))
        errors = add_by_label(_weigh(block.distances.double(), block), labels, k)
        sums = block.rows.sums(labels, k, block.weights)
        return sums, cluster_masses(labels, block.weights, k), errors


def _weigh(values: Tensor, block: PointBlock) -> Tensor:
    """Return the values (m,) of a block's points times their weights."""
    return values if block.weights is None else values * block.weights


@dataclass(frozen=True)
class PointsByDistance:
    """For each chosen cluster and draw: the largest log(w r) + g, its row and its point.

    r is the squared distance of a point, g its noise: by Gumbel's trick, points are drawn in
    proportion to w r. Precondition: `ClusterErrors` has run; reads labels and distances.

    Attributes
    ----------
    place : Tensor of shape (k,)
        For each cluster its place among the chosen ones, -1 for the others.
    count : int
        Number of chosen clusters.
    draws : NoiseDraws
        Seed, layer and number of draws.
    head : str
        Name of the draw, on which the noise depends.
    """

    place: Tensor
    count: int
    draws: NoiseDraws
    head: str = "drawn"

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        places = self.place[block.labels.long()]
        rows = torch.arange(block.start, block.start + len(places), device=places.device)
        noise = gumbel(self.draws.seed, self.draws.layer, self.head, self.draws.n_draws, rows)
        scores = _weigh(block.distances.double(), block).log() + noise  # (draws, m)
        strange = places != torch.arange(self.count, device=places.device)[:, None, None]
        best = scores.masked_fill(strange, -torch.inf).max(dim=2)  # (count, draws)
        points = block.rows.take(best.indices.flatten()).double()
        return best.values, best.indices + block.start, points.view(*best.indices.shape, -1)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # Strictly larger: on ties the lower row stays, whatever the cut into blocks.
        later = second[0] > first[0]
        return (
            torch.where(later, second[0], first[0]),
            torch.where(later, second[1], first[1]),
            torch.where(later[..., None], second[2], first[2]),
        )


@dataclass(frozen=True)
class Halves(SumFold):
    """Sums and masses of a cluster's points that are nearer to a drawn point than to its center.

    Precondition: `ClusterErrors` has run; reads labels and distances. Sums are (count, draws, d).

    Attributes
    ----------
    place : Tensor of shape (k,)
        As in `PointsByDistance`.
    points : Tensor of shape (count, draws, d)
        The drawn points.
    """

    place: Tensor
    points: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        """Return sums and mass of the near half, and the numbers of points in both halves."""
        count, places = len(self.points), self.place[block.labels.long()]
        own, places = places >= 0, places.clamp(min=0)
        there = own if block.weights is None else own & (block.weights > 0)
        parts = []
        for points in self.points.unbind(dim=1):  # of one draw
            near = own & (block.rows.squared_distances(points, places) < block.distances)
            kept = _weigh(near.double(), block)
            parts.append(
                (
                    block.rows.sums(places, count, kept),
                    add_by_label(kept, places, count),
                    add_by_label((there & near).double(), places, count),
                    add_by_label((there & ~near).double(), places, count),
                )
            )
        return tuple(torch.stack(part, dim=1) for part in zip(*parts, strict=True))


def split_clusters(
    session: Session, known: tuple[Tensor, ...], n_moved: int, draws: NoiseDraws, old: Tensor
) -> Tensor:
    """Return the means of all clusters, with the drawn clusters split in two: (k + m, d).

    known: the summary of `ClusterErrors` for the centers `old`.
    """
    sums, masses, errors = known
    device = errors.device
    # Gumbel's trick: the m largest of log p + g are m draws without replacement in proportion to p.
    noise = gumbel(draws.seed, draws.layer, "grow", len(errors), torch.zeros(1, dtype=torch.long))
    scores = SPLIT_SHARPNESS * errors.log() + noise[:, 0].to(device)
    chosen = scores.sort(descending=True, stable=True).indices[:n_moved]
    place = torch.full((len(errors),), -1, device=device)
    place[chosen] = torch.arange(len(chosen), device=device)
    points = session.fold(PointsByDistance(place, len(chosen), draws))[2]
    near, mass, n_near, n_rest = session.fold(Halves(place, points.to(old.dtype)))
    # The far half is the cluster less the near half, which saves a fold. A split lowers the
    # objective by n_1 n_2 / (n_1 + n_2) |m_1 - m_2|^2 (Ward's cost of merging the halves again).
    rest, other = sums[chosen, None] - near, masses[chosen, None] - mass
    between = (near / mass[..., None] - rest / other[..., None]).square().sum(dim=-1)
    has_both = (n_near > 0) & (n_rest > 0)
    gains = torch.where(has_both, mass * other / masses[chosen, None] * between, 0)
    # The best draw of each cluster, the first one within a tie: both halves of a split have the
    # same gain, so that draws from either half tie but for rounding.
    best, gain = torch.zeros_like(gains[:, 0], dtype=torch.long), gains[:, 0]
    for draw in range(1, gains.shape[1]):
        better = gains[:, draw] > (1 + TIE) * gain
        best, gain = torch.where(better, draw, best), torch.where(better, gains[:, draw], gain)
    means = means_or(sums, masses, old.double())
    here = torch.arange(len(chosen), device=device), best
    near, rest = near[here] / mass[here][:, None], rest[here] / other[here][:, None]
    # A cluster that no draw splits (all its points are equal) stays whole: fewer centers to remove.
    gained = gain > 0
    means[chosen[gained]] = rest[gained]
    return torch.cat([means, near[gained]])


@dataclass(frozen=True)
class TwoNearest(SumFold):
    """Store the nearest and the second nearest center of each point.

    Returns for each cluster sums, mass and utility. Utility is the sum of w (s - r), r and s being
    the squared distances to the two: the objective would grow by it if all points of the cluster
    went to their second nearest centers.
    """

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "second")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, scores = len(self.centers), block.rows.scores(self.centers)
        first = scores.min(dim=1)
        labels = first.indices
        # In place: the scores (m, k) are the largest array here, and the best is not used again.
        second = scores.scatter_(1, labels[:, None], torch.inf).min(dim=1)
        block.labels.copy_(labels)
        block.second.copy_(second.indices)
        useful = _weigh((second.values - first.values).double(), block)
        sums = block.rows.sums(labels, k, block.weights)
        return sums, cluster_masses(labels, block.weights, k), add_by_label(useful, labels, k)


@dataclass(frozen=True)
class SecondNearestSums(SumFold):
    """Sums (q, k, d) and masses (q, k) of some clusters' points, by second nearest center.

    Precondition: `TwoNearest` has run; reads labels and second.
    """

    candidates: Tensor
    n_clusters: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, q = self.n_clusters, len(self.candidates)
        place = torch.full((k,), q, device=self.candidates.device)  # the last one is not looked at
        place[self.candidates] = torch.arange(q, device=place.device)
        pairs = place[block.labels.long()] * k + block.second.long()
        kept = pairs < q * k
        weights = _weigh(kept.double(), block)
        pairs = pairs.clamp(max=q * k - 1)
        sums = block.rows.sums(pairs, q * k, weights)
        return sums.view(q, k, -1), add_by_label(weights, pairs, q * k).view(q, k)


def remove_cheapest_center(session: Session, centers: Tensor, tie: float = 0.0) -> Tensor:
    r"""Return the means without the center that costs least to remove, the first within a tie.

    Without center a, whose points with second nearest center j have mass $n_{aj}$ and mean
    $\mu_{aj}$, the objective grows by
    $\sum_j \frac{n_j n_{aj}}{n_j + n_{aj}} |\mu_{aj} - m_j|^2 - n_{aj} |\mu_{aj} - m_a|^2$.
    """
    k = len(centers)
    sums, masses, utility = session.fold(TwoNearest(centers.to(session.layout.dtype)))
    # Utility is the cost if the other centers stayed in place; the exact cost, after their means
    # have moved, is computed for the few with the least utility. These are put in the order of
    # their numbers, so that ties go to the lowest center.
    candidates = utility.sort(stable=True).indices[:REMOVAL_CANDIDATES].sort().values
    parts, mass = session.fold(SecondNearestSums(candidates, k))
    means = means_or(sums, masses, centers)
    # Where a has no points with second nearest center j, mass is 0 and so is the cost.
    at = parts / mass.clamp(min=torch.finfo(mass.dtype).tiny)[..., None]
    joined = (at - means).square().sum(dim=-1)
    left = (at - means[candidates, None]).square().sum(dim=-1)
    both = (mass + masses).clamp(min=torch.finfo(mass.dtype).tiny)
    costs = (masses * mass / both * joined - mass * left).sum(dim=1)
    best = int((costs <= costs.min() + tie).int().argmax())
    sums, masses = sums + parts[best], masses + mass[best]
    means = means_or(sums, masses, centers)
    keep = torch.arange(k, device=centers.device) != candidates[best]
    return means[keep]


@dataclass(frozen=True)
class RelocationResult:
    """Relocated centers (k, d) in float64, and the objectives before and after."""

    centers: Tensor
    before: float
    after: float


@dataclass(frozen=True)
class Relocation(Task):
    """A whole relocation in one call; returns a `RelocationResult`.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The centers, in float64.
    n_moved : int
        Number of clusters that are split, and of centers that are removed.
    draws : NoiseDraws
        Seed, layer and number of draws.
    """

    centers: Tensor
    n_moved: int
    draws: NoiseDraws
    writes: ClassVar[Columns] = ()


@dataclass(frozen=True)
class RelocatingIterations(Task):
    """Lloyd's iterations and relocations from several starts in one call.

    Attributes
    ----------
    starts : Tensor of shape (b, k, d)
        The initial centers, in float64.
    seeds : tuple of int
        Random seed of each start.
    layer : int
        Number of the first layer, on which the noise depends.
    n_moved, n_draws, patience, rest
        As in `lloydformer.solving.relocations.Relocations`.
    max_layers : int
        Maximum number of layers of each start.
    tolerance : float
        Centers have settled if the sum of their squared shifts is at most this.
    """

    starts: Tensor
    seeds: tuple[int, ...]
    layer: int
    n_moved: int
    n_draws: int
    patience: int
    rest: int | None
    max_layers: int
    tolerance: float


@dataclass(frozen=True)
class RelocatingResult:
    """The result of one start.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The final centers, in float64.
    masses : tuple of float
        The weight of the points of each cluster.
    objective : float
        The objective of the final centers.
    history : list of float
        The objective before each layer.
    interrupted : bool
        Ctrl-C was pressed during the call.
    """

    centers: Tensor
    masses: tuple[float, ...]
    objective: float
    history: list[float]
    interrupted: bool = False


def relocate(
    session: Session, centers: Tensor, n_moved: int, draws: NoiseDraws
) -> RelocationResult:
    """Relocate `n_moved` centers: by the engine's task, or by folds if it has none."""
    done = session.run(Relocation(centers, n_moved, draws))
    return relocate_by_folds(session, centers, n_moved, draws) if done is None else done


def relocate_by_folds(
    session: Session, centers: Tensor, n_moved: int, draws: NoiseDraws
) -> RelocationResult:
    """Relocate `n_moved` centers by folds alone, which write the labels of the session."""
    k, dtype = len(centers), session.layout.dtype
    known = session.fold(ClusterErrors(centers.to(dtype)))
    before = known[2].sum().item()
    grown = split_clusters(session, known, n_moved, draws, centers.to(dtype))
    sums, masses, _ = session.fold(NearestSums(grown.to(dtype)))
    grown = means_or(sums, masses, grown)
    # One at a time: a removal changes the cost of its neighbours.
    while len(grown) > k:
        grown = remove_cheapest_center(session, grown, TIE * before)
    # Removals give means of points that are not yet labelled by them: one step of Lloyd's algorithm
    # follows, whose gain sum m |new - old|^2 needs no other pass.
    sums, masses, errors = session.fold(ClusterErrors(grown.to(dtype)))
    means = means_or(sums, masses, grown)
    less = masses * (means - grown).square().sum(dim=1)
    return RelocationResult(means, before, (errors.sum() - less.sum()).item())
