"""Runs folds by kernels: allocates the arrays of a summary, calls the kernel, returns tensors.

A kernel gives the summary of its rows in a form that can still be merged with that of other rows;
`finish` turns it into the summary of the fold.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.engines.thread_pool import one_core
from lloydformer.numerics.tree import tree_levels
from lloydformer.plans.assign import Moments, NearestCosines, NearestDistances, NearestSums
from lloydformer.plans.medoids import MedoidDraw, NearestRows
from lloydformer.plans.relocating import ClusterErrors, Halves, TwoNearest
from lloydformer.plans.robust import HighestScores, RobustSums, SoftmaxWeights, SumsAboveThreshold
from lloydformer.plans.seeding import NewSeed, Oversampling, Potential
from lloydformer.plans.soft import SoftSums
from lloydformer.plans.symmetric import AttentionSums, NearestCosts
from lloydformer.plans.trimmed import DistanceHistogram, TrimmedSums

Raw = Any
"""The summary of some rows, as a kernel returns it."""
Summary = Any
"""The summary of all rows, as the fold returns it."""


@dataclass(frozen=True)
class KernelFold:
    """How kernels run a fold.

    Attributes
    ----------
    run : callable
        Takes the open points and the fold; returns the raw summary of these points, or None where
        the plain fold must run instead, which depends on the fold and the precision alone.
    finish : callable
        Takes the fold and the raw summary of all rows; returns the summary of the fold, or None
        where the plain fold must run instead.
    merge : callable or None
        Takes the raw summaries of neighbouring rows; None: as the fold does.
    instead : callable
        Takes the summary of the plain fold that ran after `finish` returned None, and the raw one.
    """

    run: Callable[[OpenPoints, Any], Raw | None]
    finish: Callable[[Any, Raw], Summary | None] = lambda fold, raw: raw
    merge: Callable[[Raw, Raw], Raw] | None = None
    instead: Callable[[Summary, Raw], Summary] = lambda summary, raw: summary

    def merge_for(self, fold: Any) -> Callable[[Raw, Raw], Raw]:
        return self.merge or fold.merge


_PART = 1 << 16
"""Rows whose random numbers are drawn together; bounds temporary memory."""

_FAINT = {torch.float32: 1e-20, torch.float64: 1e-200}
"""Below this mass a soft cluster needs the running maximum of the plain fold."""

_MOST_HEADS = 4
"""Upper limit of the heads of a symmetric layer that kernels are compiled for."""


def _moments(points: OpenPoints, fold: Moments) -> Summary:
    found = _zeros(3 + points.layout.n_features)
    points.kernels.run("moments", out=found.numpy())
    return found[0], found[1], found[2], found[3:]


def _nearest(points: OpenPoints, fold: NearestSums) -> Summary:
    sums, masses = _zeros(*fold.centers.shape), _zeros(len(fold.centers))
    changed = points.kernels.run(
        "nearest", centers=_array(fold.centers), **points.columns("labels", "previous"),
        fresh=points.fresh, sums=sums.numpy(), masses=masses.numpy(),
    )  # fmt: skip
    points.fresh = False
    return sums, masses, torch.tensor(changed)


def _measure(points: OpenPoints, fold: NearestDistances) -> Summary:
    spread, masses = _zeros(len(fold.centers)), _zeros(len(fold.centers))
    points.kernels.run(
        "measure", centers=_array(fold.centers),
        **points.columns("labels", "previous", "distances"), fresh=points.fresh,
        spread=spread.numpy(), masses=masses.numpy(),
    )  # fmt: skip
    return spread, masses


def _measured(fold: NearestDistances, raw: Raw) -> Summary:
    spread, masses = raw
    return spread.sum(), masses - spread / 2 if isinstance(fold, NearestCosines) else masses


def _changes(points: OpenPoints, fold: NearestSums) -> Raw:
    """Sums, masses and numbers of points, and changed labels; whether the sums start again."""
    k = len(fold.centers)
    sums, masses, counts = _zeros(*fold.centers.shape), _zeros(k), torch.zeros(k, dtype=torch.int64)
    changed, fresh = points.kernels.run(
        "changes", centers=_array(fold.centers), **points.columns("labels", "previous"),
        fresh=points.fresh, sums=sums.numpy(), masses=masses.numpy(), counts=counts.numpy(),
    )  # fmt: skip
    points.fresh = False
    return sums, masses, counts, torch.tensor(changed), bool(fresh)


def _merged_changes(first: Raw, second: Raw) -> Raw:
    assert first[-1] == second[-1], "all parts have run the same folds"
    return *(a + b for a, b in zip(first[:-1], second[:-1], strict=True)), first[-1]


def _shares(points: OpenPoints, fold: SoftSums) -> Raw | None:
    held = torch.finfo(fold.centers.dtype)
    if not held.tiny <= fold.inverse_temperature <= held.max:  # the kernel holds it in this dtype
        return None
    sums, masses, energy = _zeros(*fold.centers.shape), _zeros(len(fold.centers)), _zeros(1)
    changed = points.kernels.run(
        "shares", centers=_array(fold.centers), inverse_temperature=fold.inverse_temperature,
        **points.columns("labels", "previous"),
        sums=sums.numpy(), masses=masses.numpy(), energy=energy.numpy(),
    )  # fmt: skip
    np.copyto(points.array("previous"), points.array("labels"))
    return torch.zeros_like(masses), sums, masses, energy[0], torch.tensor(changed)


def _shared(fold: SoftSums, raw: Raw) -> Summary | None:
    return None if raw[2].min() < _FAINT[fold.centers.dtype] else raw


def _shared_plainly(summary: Summary, raw: Raw) -> Summary:
    """The kernel has counted the changed labels, and has replaced the previous ones."""
    return *summary[:-1], raw[-1]


def _nearest_costs(points: OpenPoints, fold: NearestCosts) -> Summary:
    k = len(fold.centers)
    sums, masses, costs = _zeros(2), _zeros(k), _zeros(k)
    points.kernels.run(
        "two_nearest", centers=_array(fold.centers),
        sums=sums.numpy(), masses=masses.numpy(), costs=costs.numpy(),
    )  # fmt: skip
    return sums[0], sums[1], masses, costs


def _attention_sums(points: OpenPoints, fold: AttentionSums) -> Summary | None:
    heads, (k, d) = fold.heads, fold.centers.shape
    h = len(heads.sharpness)
    if h > _MOST_HEADS:
        return None
    level, masses, sums = _zeros(k, h), _zeros(k, h), _zeros(k, h, d)
    names = ("sharpness", "distance", "log_belonging", "nearest", "second", "belonging")
    points.kernels.run(
        "attention", centers=_array(fold.centers), unit=fold.unit,
        **{name: _array(getattr(heads, name)) for name in names},
        level=level.numpy(), masses=masses.numpy(), sums=sums.numpy(),
    )  # fmt: skip
    return level, masses, sums


def _merged_attention(first: Raw, second: Raw) -> Raw:
    """As the kernel merges leaves: levels are whole numbers in base 2, so factors are exact."""
    levels = [(raw[0] / math.log(2)).round() for raw in (first, second)]
    higher = torch.maximum(*levels)
    one, two = (torch.exp2(level - higher) for level in levels)
    level = torch.where(levels[0] >= levels[1], first[0], second[0])
    masses = one * first[1] + two * second[1]
    return level, masses, one[..., None] * first[2] + two[..., None] * second[2]


def _histogram(points: OpenPoints, fold: DistanceHistogram) -> Summary:
    masses = _zeros(len(fold.prefix), 256)
    points.kernels.run(
        "histogram", **points.columns("labels", "distances"),
        prefix=_array(fold.prefix), shift=fold.shift, masses=masses.numpy(),
    )  # fmt: skip
    return (masses,)


def _within(points: OpenPoints, fold: TrimmedSums) -> Summary:
    sums, masses, objective = _summed(points, len(fold.radius))
    changed = points.kernels.run(
        "within", **points.columns("labels", "previous", "trimmed", "distances"),
        radius=_array(fold.radius),
        sums=sums.numpy(), masses=masses.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _best(points: OpenPoints, fold: HighestScores) -> Summary:
    best, masses = _zeros(fold.n_clusters), _zeros(fold.n_clusters)
    least = torch.zeros(fold.n_clusters, dtype=points.layout.dtype)
    points.kernels.run(
        "best", **points.columns("labels", "distances"),
        inverse_temperature=fold.inverse_temperature, best=best.numpy(), masses=masses.numpy(),
        least=least.numpy(),
    )  # fmt: skip
    return least, best.masked_fill_(masses == 0, -torch.inf), masses


def _merged_best(first: Raw, second: Raw) -> Raw:
    """Distances are compared: those that differ may have the same score."""
    least = torch.minimum(first[0], second[0])
    held = (first[0] == least) * first[2] + (second[0] == least) * second[2]
    return least, torch.maximum(first[1], second[1]), held


def _above(points: OpenPoints, fold: SumsAboveThreshold) -> Summary:
    masses, scores = _zeros(len(fold.threshold)), _zeros(len(fold.threshold))
    threshold = fold.threshold.nan_to_num(nan=0.0)  # infinity becomes the largest number
    points.kernels.run(
        "above", **points.columns("labels", "distances"),
        inverse_temperature=fold.inverse_temperature, threshold=_array(threshold),
        masses=masses.numpy(), scores=scores.numpy(),
    )  # fmt: skip
    return masses, scores


def _weighted(points: OpenPoints, fold: RobustSums) -> Summary:
    sums, masses, objective = _summed(points, fold.n_clusters)
    weigh, radius = fold.weigh, None
    if isinstance(weigh, SoftmaxWeights):
        level, radius = weigh.best, weigh.radius.double().nan_to_num()
    else:
        level = weigh.threshold
    changed = points.kernels.run(
        "weighted", **points.columns("labels", "previous", "distances"),
        inverse_temperature=weigh.inverse_temperature, level=_array(level.nan_to_num(nan=0.0)),
        radius=None if radius is None else _array(radius),
        sums=sums.numpy(), masses=masses.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _new_seed(points: OpenPoints, fold: NewSeed) -> Summary:
    masses = _zeros(points.layout.n_leaves)
    points.kernels.run(
        "closer", seed=_array(fold.seed[0]), first=fold.first,
        **points.columns("labels", "distances"), masses=masses.numpy(),
    )  # fmt: skip
    points.leaf_masses = masses
    return (tree_levels(masses)[-1][0],)


def _potential(points: OpenPoints, fold: Potential) -> Summary:
    gains = _zeros(len(fold.candidates))
    points.kernels.run(
        "gains", candidates=_array(fold.candidates), **points.columns("labels", "distances"),
        gains=gains.numpy(),
    )  # fmt: skip
    return (gains,)


def _oversample(points: OpenPoints, fold: Oversampling) -> Summary:
    attracted, mass = _zeros(fold.known + len(fold.fresh)), _zeros(1)
    points.kernels.run(
        "approach", centers=_array(fold.fresh), known=fold.known,
        **points.columns("labels", "distances"),
        attracted=attracted.numpy(), mass=mass.numpy(),
    )  # fmt: skip
    return mass[0], *_drawn(points, fold, mass[0]), attracted


@one_core()
def _drawn(points: OpenPoints, fold: Oversampling, total: Tensor) -> tuple[Tensor, Tensor]:
    """Ratios and rows of the points whose ratio is above the sum of w d^2."""
    distances, n_rows = points.state.column("distances"), points.layout.n_rows
    ratios, rows = [], []
    for start in range(0, n_rows, _PART):
        stop = min(start + _PART, n_rows)
        weights, mass = points.blocks.weights(start, stop), distances[start:stop].double()
        first = points.blocks.first_row + start
        found = fold.ratios(first, mass if weights is None else mass * weights)
        chosen = (found > total).nonzero()[:, 0]
        ratios.append(found[chosen])
        rows.append(chosen + first)
    return torch.cat(ratios), torch.cat(rows)


def _draw(points: OpenPoints, fold: MedoidDraw) -> Summary:
    k, objective = len(fold.centers), _zeros(1)
    best, rows = _zeros(k), torch.zeros(k, dtype=torch.int64)
    owned = torch.zeros(k, dtype=torch.bool)
    changed = points.kernels.run(
        "draw", centers=_array(fold.centers), seed=fold.seed, layer=fold.iteration,
        first_row=points.blocks.first_row,
        penalty=None if fold.separation is None else 2.0 * fold.separation,
        **points.columns("labels", "previous", "distances"),
        owned=owned.numpy(), best=best.numpy(), rows=rows.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    best.masked_fill_(rows < 0, -torch.inf)  # no point has weight
    drawn = points.blocks.take(rows.clamp_(min=0)).double()
    rows += points.blocks.first_row
    return owned, best, rows, drawn, objective[0], torch.tensor(changed)


def _closest(points: OpenPoints, fold: NearestRows) -> Summary:
    k = len(fold.centers)
    distances, rows = torch.zeros(k, dtype=fold.centers.dtype), torch.zeros(k, dtype=torch.int64)
    points.kernels.run(
        "closest", centers=_array(fold.centers), closest=distances.numpy(), rows=rows.numpy()
    )
    distances.masked_fill_(rows < 0, torch.inf)  # no point has weight
    return distances, rows.clamp_(min=0) + points.blocks.first_row


def _errors(points: OpenPoints, fold: ClusterErrors) -> Summary:
    sums, masses, errors, _ = _two_labels(points, fold.centers, "distances")
    return sums, masses, errors


def _two_nearest(points: OpenPoints, fold: TwoNearest) -> Summary | None:
    if len(fold.centers) < 2:  # there is no second one
        return None
    sums, masses, _, useful = _two_labels(points, fold.centers, "second")
    return sums, masses, useful


def _two_labels(points: OpenPoints, centers: Tensor, column: str) -> list[Tensor]:
    """Labels and another column; sums (k, d), and for each cluster mass, error and utility."""
    k = len(centers)
    found = [_zeros(*centers.shape), _zeros(k), _zeros(k), _zeros(k)]
    names = ("sums", "masses", "errors", "useful")
    points.kernels.run(
        "two_labels", centers=_array(centers), **points.columns("labels", column),
        **{name: out.numpy() for name, out in zip(names, found, strict=True)},
    )  # fmt: skip
    return found


def _halves(points: OpenPoints, fold: Halves) -> Summary:
    count, draws, d = fold.points.shape
    found = [_zeros(count, draws, d), *(_zeros(count, draws) for _ in range(3))]
    names = ("sums", "masses", "near", "rest")
    points.kernels.run(
        "halves", **points.columns("labels", "distances"), place=_array(fold.place.int()),
        points=_array(fold.points),
        **{name: out.numpy() for name, out in zip(names, found, strict=True)},
    )  # fmt: skip
    return tuple(found)


FOLDS: dict[type, KernelFold] = {
    Moments: KernelFold(_moments),
    NearestSums: KernelFold(_nearest),
    NearestDistances: KernelFold(_measure, _measured),
    NearestCosines: KernelFold(_measure, _measured),
    SoftSums: KernelFold(_shares, _shared, instead=_shared_plainly),
    NearestCosts: KernelFold(_nearest_costs),
    AttentionSums: KernelFold(_attention_sums, merge=_merged_attention),
    DistanceHistogram: KernelFold(_histogram),
    TrimmedSums: KernelFold(_within),
    HighestScores: KernelFold(_best, lambda fold, raw: raw[1:], _merged_best),
    SumsAboveThreshold: KernelFold(_above),
    RobustSums: KernelFold(_weighted),
    NewSeed: KernelFold(_new_seed),
    Potential: KernelFold(_potential, lambda fold, raw: (fold.now - raw[0],)),
    MedoidDraw: KernelFold(_draw),
    NearestRows: KernelFold(_closest),
    Oversampling: KernelFold(_oversample),
    ClusterErrors: KernelFold(_errors),
    TwoNearest: KernelFold(_two_nearest),
    Halves: KernelFold(_halves),
}
"""Kernels by the fold that they run."""

SPARSE_FOLDS: dict[type, KernelFold] = {
    fold: FOLDS[fold]
    for fold in (
        Moments,
        NearestSums,
        NearestDistances,
        NearestCosines,
        SoftSums,
        NewSeed,
        Potential,
    )
}
"""Those that have kernels for sparse rows, too."""

CHANGES = KernelFold(_changes, merge=_merged_changes)
"""`NearestSums` for a part of the data: changes of sums, for a session that adds up all parts."""


def label_sums(points: OpenPoints, n_clusters: int) -> Raw:
    """The sums of `CHANGES` from the beginning. Precondition: `CHANGES` was the last fold."""
    sums, masses = _zeros(n_clusters, points.layout.n_features), _zeros(n_clusters)
    counts = torch.zeros(n_clusters, dtype=torch.int64)
    points.kernels.run(
        "label_sums", **points.columns("labels"), k=n_clusters,
        sums=sums.numpy(), masses=masses.numpy(), counts=counts.numpy(),
    )  # fmt: skip
    return sums, masses, counts


def _summed(points: OpenPoints, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros for sums (k, d), masses (k) and an objective."""
    return _zeros(n_clusters, points.layout.n_features), _zeros(n_clusters), _zeros(1)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def _array(values: Tensor) -> np.ndarray:
    return values.contiguous().numpy()
