r"""K-means of rows with missing values: sums and counts by coordinate.

The objective is $\sum_i w_i f_i \sum_{l \in O_i} (x_{il} - c_{a_i l})^2$ over the observed columns
O_i of each row. For given labels each coordinate of a center has a minimum of its own, the weighted
mean of the values that are observed: sums (k, d) over counts (k, d). `data/missing.py` has the
distances, and docs/missing-values.md the algorithm.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.data.missing import MaskedRows
from lloydformer.data.rows import DenseRows
from lloydformer.numerics.clusters import add_by_label
from lloydformer.numerics.noise import gumbel
from lloydformer.numerics.search_constants import REMOVAL_CANDIDATES, SPLIT_SHARPNESS, TIE
from lloydformer.plans.assign import (
    NearestDistances,
    cluster_masses,
    count_label_changes,
)
from lloydformer.plans.contract import Empties, Plan, Step, StopsOn, Sums
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.relocating import NoiseDraws, PointsByDistance, RelocationResult
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, weighted_sum
from lloydformer.plans.trimmed import TrimmedPlan, find_radii, target_masses


def masked_rows(block: PointBlock) -> MaskedRows:
    """Return the rows of a block, which must have a mask."""
    rows = block.rows
    assert isinstance(rows, MaskedRows), "the data have missing values"
    return rows


def means_by_coordinate(sums: Tensor, counts: Tensor, otherwise: Tensor) -> Tensor:
    """Divide sums by counts of the same shape; return `otherwise` where nothing is observed."""
    return torch.where(counts > 0, sums / counts, otherwise)


# --- iterations -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class MaskedSums(SumFold):
    """Label every row by its nearest center over its observed values.

    The summary is sums (k, d), counts (k, d), masses (k,), the objective and the changed labels.
    """

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "previous")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, k, weights = masked_rows(block), len(self.centers), block.weights
        labels = rows.nearest(self.centers)
        block.labels.copy_(labels)
        cost = weighted_sum(rows.squared_distances(self.centers, labels), weights)
        sums, counts = rows.sums(labels, k, weights), rows.counts(labels, k, weights)
        masses = cluster_masses(labels, weights, k)
        return sums, counts, masses, cost, count_label_changes(block)


@dataclass(frozen=True)
class IgnoringPlan(MeansPlan):
    """Each coordinate of a center moves to the mean of its points' observed values."""

    # The farthest point also stays in its cluster: its missing values would leave the wrong sums.
    empties: ClassVar[Empties] = "copy"

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        sums, counts, masses, cost, changed = session.fold(MaskedSums(centers))
        return Step(self.weigh(sums, counts, masses, centers.double()), cost, changed)

    def weigh(self, sums: Tensor, counts: Tensor, masses: Tensor, centers: Tensor) -> Sums:
        """Return the new centers as sums over masses, in which empty clusters can be filled."""
        return Sums(masses[:, None] * means_by_coordinate(sums, counts, centers), masses)

    def iterate(self, session: Session, centers: Tensor, tolerance: float, max_iter: int) -> None:
        return None  # no engine has the whole loop


@dataclass(frozen=True)
class ImputingPlan(IgnoringPlan):
    """Missing values of a point are those of its center; then a center is the mean of its points.

    This is the majorisation of k-POD: at the current centers, the squared distances with filled-in
    values touch those over observed values alone, and are above them everywhere else.
    """

    # Centers still move while no label changes: filled-in values follow them.
    stops_on: ClassVar[StopsOn] = "shift"

    def weigh(self, sums: Tensor, counts: Tensor, masses: Tensor, centers: Tensor) -> Sums:
        return Sums(sums + (masses[:, None] - counts) * centers, masses)


@dataclass(frozen=True)
class MaskedTrimmedSums(SumFold):
    """`TrimmedSums` for rows with missing values, with counts (k, d) after the sums."""

    radius: Tensor

    writes: ClassVar[Columns] = ("previous", "trimmed")
    writes_from: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, k, labels = masked_rows(block), len(self.radius), block.labels.long()
        kept = block.distances <= self.radius[labels]
        weights = kept.double() if block.weights is None else kept * block.weights.double()
        sums, counts = rows.sums(labels, k, weights), rows.counts(labels, k, weights)
        objective = weighted_sum(block.distances, weights)
        # As in `TrimmedSums`: the kept set must settle as well as the labels.
        changed = count_label_changes(block, also=block.trimmed == kept)
        block.trimmed.copy_(~kept)
        return sums, counts, cluster_masses(labels, weights, k), objective, changed


@dataclass(frozen=True)
class MaskedTrimmedPlan(TrimmedPlan):
    """Trimmed k-means whose distances and means are those of `plan`, over observed values."""

    plan: IgnoringPlan = IgnoringPlan()

    @property
    def stops_on(self) -> StopsOn:  # type: ignore[override]
        return self.plan.stops_on

    def _step(self, session: Session, nearest: NearestDistances) -> Step:
        _, masses = session.fold(nearest)
        radii = find_radii(session, target_masses(masses, self.keep), nearest.centers.dtype)
        sums, counts, kept, objective, changed = session.fold(MaskedTrimmedSums(radii))
        centers = nearest.centers.double()
        return Step(self.plan.weigh(sums, counts, kept, centers), objective, changed)


def plan_for_missing(plan: Plan, missing: str) -> Plan:
    """Return the plan of k-means or trimmed k-means for rows with missing values.

    missing: "ignore" or "impute".
    """
    masked = IgnoringPlan() if missing == "ignore" else ImputingPlan()
    if isinstance(plan, TrimmedPlan):
        return MaskedTrimmedPlan(plan.keep, masked)
    assert plan == MeansPlan(), plan
    return masked


# --- relocations ----------------------------------------------------------------------------------
# The folds and formulas of `plans/relocating.py`, with counts by coordinate in place of masses.
@dataclass(frozen=True)
class MaskedErrors(SumFold):
    """Store labels and distances; returns sums, counts, masses and errors of the clusters."""

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "distances")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, k, weights = masked_rows(block), len(self.centers), block.weights
        labels = rows.nearest(self.centers)
        block.labels.copy_(labels)
        block.distances.copy_(rows.squared_distances(self.centers, labels))
        spread = block.distances.double() * (1.0 if weights is None else weights)
        sums, counts = rows.sums(labels, k, weights), rows.counts(labels, k, weights)
        masses = cluster_masses(labels, weights, k)
        return sums, counts, masses, add_by_label(spread, labels, k)


@dataclass(frozen=True)
class CompletedPoints(PointsByDistance):
    """Draw points as `PointsByDistance` does; missing values are those of their centers."""

    centers: Tensor | None = None  # always set: fields of the base class have defaults

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, labels = masked_rows(block), block.labels.long()
        assert self.centers is not None
        complete = torch.where(rows.observed, rows.points, self.centers[labels])
        return super().map(replace(block, read=lambda: DenseRows(complete, None)))


@dataclass(frozen=True)
class MaskedHalves(SumFold):
    """Sums and counts (count, draws, d) of a cluster's points that are nearer to a drawn point.

    Also the numbers of points in both halves. Precondition: `MaskedErrors` has run.
    """

    place: Tensor
    points: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, weights = masked_rows(block), block.weights
        count, places = len(self.points), self.place[block.labels.long()]
        own, places = places >= 0, places.clamp(min=0)
        there = own if weights is None else own & (weights > 0)
        parts = []
        for points in self.points.unbind(dim=1):  # of one draw
            near = own & (rows.squared_distances(points, places) < block.distances)
            kept = near.double() if weights is None else near * weights
            parts.append(
                (
                    rows.sums(places, count, kept),
                    rows.counts(places, count, kept),
                    add_by_label((there & near).double(), places, count),
                    add_by_label((there & ~near).double(), places, count),
                )
            )
        return tuple(torch.stack(part, dim=1) for part in zip(*parts, strict=True))


@dataclass(frozen=True)
class MaskedTwoNearest(SumFold):
    """Store the two nearest centers; returns sums, counts and utilities of the clusters."""

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "second")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, k, weights = masked_rows(block), len(self.centers), block.weights
        two = rows.distances_to_all(self.centers).topk(2, dim=1, largest=False)
        labels = two.indices[:, 0]
        block.labels.copy_(labels)
        block.second.copy_(two.indices[:, 1])
        useful = (two.values[:, 1] - two.values[:, 0]).double()
        useful = useful * (1.0 if weights is None else weights)
        sums, counts = rows.sums(labels, k, weights), rows.counts(labels, k, weights)
        return sums, counts, add_by_label(useful, labels, k)


@dataclass(frozen=True)
class MaskedSecondSums(SumFold):
    """Sums and counts (q, k, d) of some clusters' points, by second nearest center.

    Precondition: `MaskedTwoNearest` has run.
    """

    candidates: Tensor
    n_clusters: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, k, q = masked_rows(block), self.n_clusters, len(self.candidates)
        place = torch.full((k,), q)  # the last one is not looked at
        place[self.candidates] = torch.arange(q)
        pairs = place[block.labels.long()] * k + block.second.long()
        kept = (pairs < q * k).double() * (1.0 if block.weights is None else block.weights)
        pairs = pairs.clamp(max=q * k - 1)
        parts = rows.sums(pairs, q * k, kept), rows.counts(pairs, q * k, kept)
        return tuple(part.view(q, k, -1) for part in parts)


def cost_of_merging(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    r"""Return by how much the objective rises if two clusters become one, by Ward's formula.

    Each cluster is sums and counts (..., d); the cost is $\sum_l \frac{n_l m_l}{n_l + m_l}
    (\mu_l - \nu_l)^2$, 0 in a column that one of them has not observed.
    """
    (first, n), (second, m) = one, other
    tiny = torch.finfo(n.dtype).tiny
    between = (first / n.clamp(min=tiny) - second / m.clamp(min=tiny)).square()
    return (n * m / (n + m).clamp(min=tiny) * between).sum(dim=-1)


def _split_clusters(
    session: Session, known: tuple[Tensor, ...], n_moved: int, draws: NoiseDraws, old: Tensor
) -> Tensor:
    """Return the means of all clusters, with drawn clusters split in two: (k + m, d)."""
    sums, counts, _, errors = known
    noise = gumbel(draws.seed, draws.layer, "grow", len(errors), torch.zeros(1, dtype=torch.long))
    scores = SPLIT_SHARPNESS * errors.log() + noise[:, 0]
    chosen = scores.sort(descending=True, stable=True).indices[:n_moved]
    place = torch.full((len(errors),), -1)
    place[chosen] = torch.arange(len(chosen))
    drawn = CompletedPoints(place, len(chosen), draws, centers=old)
    points = session.fold(drawn)[2]
    near, seen, n_near, n_rest = session.fold(MaskedHalves(place, points.to(old.dtype)))
    rest, left = sums[chosen, None] - near, counts[chosen, None] - seen
    both = (n_near > 0) & (n_rest > 0)
    gains = torch.where(both, cost_of_merging((near, seen), (rest, left)), 0)
    # The first draw within a tie, as for complete rows.
    best, gain = torch.zeros_like(gains[:, 0], dtype=torch.long), gains[:, 0]
    for draw in range(1, gains.shape[1]):
        better = gains[:, draw] > (1 + TIE) * gain
        best, gain = torch.where(better, draw, best), torch.where(better, gains[:, draw], gain)
    means = means_by_coordinate(sums, counts, old.double())
    here, gained = (torch.arange(len(chosen)), best), gain > 0
    whole = means[chosen]
    # Counts are differences of sums: what is left of a column without values is rounding.
    left = torch.where(left > TIE * counts[chosen, None], left, 0)
    first = means_by_coordinate(rest[here], left[here], whole)
    second = means_by_coordinate(near[here], seen[here], whole)
    means[chosen[gained]] = first[gained]
    return torch.cat([means, second[gained]])


def _remove_cheapest_center(session: Session, centers: Tensor, tie: float) -> Tensor:
    """Return the means without the center that costs least to remove, the first within a tie."""
    k = len(centers)
    found = session.fold(MaskedTwoNearest(centers.to(session.layout.dtype)))
    sums, counts, utility = found
    candidates = utility.sort(stable=True).indices[:REMOVAL_CANDIDATES].sort().values
    parts, seen = session.fold(MaskedSecondSums(candidates, k))
    # Each group of points with one second nearest center leaves its own center, and joins that one.
    at = parts / seen.clamp(min=torch.finfo(seen.dtype).tiny)
    means = means_by_coordinate(sums, counts, centers)
    left = (seen * (at - means[candidates, None]).square()).sum(dim=-1)
    costs = (cost_of_merging((parts, seen), (sums, counts)) - left).sum(dim=1)
    best = int((costs <= costs.min() + tie).int().argmax())
    sums, counts = sums + parts[best], counts + seen[best]
    means = means_by_coordinate(sums, counts, centers)
    return means[torch.arange(k) != candidates[best]]


def relocate_masked(
    session: Session, centers: Tensor, n_moved: int, draws: NoiseDraws
) -> RelocationResult:
    """Relocate `n_moved` centers, as `relocate_by_folds` does for complete rows."""
    k, dtype = len(centers), session.layout.dtype
    known = session.fold(MaskedErrors(centers.to(dtype)))
    before = known[3].sum().item()
    grown = _split_clusters(session, known, n_moved, draws, centers.to(dtype))
    sums, counts, *_ = session.fold(MaskedSums(grown.to(dtype)))
    grown = means_by_coordinate(sums, counts, grown)
    while len(grown) > k:  # one at a time: a removal changes the cost of its neighbours
        grown = _remove_cheapest_center(session, grown, TIE * before)
    sums, counts, _, errors = session.fold(MaskedErrors(grown.to(dtype)))
    means = means_by_coordinate(sums, counts, grown)
    less = (counts * (means - grown).square()).sum()
    return RelocationResult(means, before, (errors.sum() - less).item())
