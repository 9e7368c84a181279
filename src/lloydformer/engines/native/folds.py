"""The register of folds that kernels run: one function for each fold, which calls its kernel.

Fold, function and kernel have one name: `NearestSums` is run by `run_nearest_sums`, which calls the
kernel "nearest_sums", `run_nearest_sums` of `kernels/lloyd.hpp`. A kernel gives the summary of its
rows in a form that can still be merged with that of other rows; `finish` turns it into the summary
of the fold.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.missing import MaskedBlocks
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.engines.thread_pool import one_core
from lloydformer.numerics.tree import tree_levels
from lloydformer.plans.assign import (
    Farthest,
    FarthestPoints,
    Moments,
    NearestCosines,
    NearestDistances,
    NearestSums,
)
from lloydformer.plans.medoids import MedoidDraw, NearestRows
from lloydformer.plans.missing import MaskedSums
from lloydformer.plans.mixture import Components, MixtureLabels, MixtureSums
from lloydformer.plans.relocating import ClusterErrors, Halves, TwoNearest
from lloydformer.plans.robust import HighestScores, RobustSums, SoftmaxWeights, SumsAboveThreshold
from lloydformer.plans.seeding import NewSeed, Oversampling, Potential
from lloydformer.plans.soft import SoftSums
from lloydformer.plans.symmetric import AttentionSums, NearestCosts
from lloydformer.plans.trimmed import DistanceHistogram, TrimmedSums

F = TypeVar("F", bound=Callable[..., Any])
Raw = Any  # the summary of some rows, as a kernel returns it
Summary = Any  # the summary of all rows, as the fold returns it


@dataclass(frozen=True)
class KernelFold:
    """The functions by which kernels run a fold.

    Kernels can decline a fold in two ways, and then the plain fold runs instead: `run` returns None
    before it has read a point, or `finish` returns None after the pass, because of its result. In
    the second case the state of the points has changed already, which `instead` corrects. (A task
    is declined by None alone: see `tasks.py`.)

    Attributes
    ----------
    run : callable
        Called with the open points and the fold; returns the raw summary of these points. Returns
        None to decline, which depends on the fold and the precision alone, never on the points:
        all partitions of the data decide alike.
    finish : callable
        Called with the fold and the raw summary of all rows; returns the summary of the fold, or
        None to decline.
    merge : callable or None
        Merges the raw summaries of neighbouring rows; None: by the `merge` of the fold.
    instead : callable
        Called after `finish` has declined, with the summary of the plain fold and the raw summary;
        returns the summary of the fold.
    """

    run: Callable[[OpenPoints, Any], Raw | None]
    finish: Callable[[Any, Raw], Summary | None] = lambda fold, raw: raw
    merge: Callable[[Raw, Raw], Raw] | None = None
    instead: Callable[[Summary, Raw], Summary] = lambda summary, raw: summary


FOLDS: dict[type, KernelFold] = {}  # the functions of each fold that has kernels


def runs(fold: type, **options: Any) -> Callable[[F], F]:
    """Register the decorated function in `FOLDS`; options: other attributes of `KernelFold`."""

    def register(run: F) -> F:
        FOLDS[fold] = KernelFold(run, **options)
        return run

    return register


# The columns that folds after an assignment read: labels, and distances to the nearest center.
_NEAREST = ("labels", "distances")

# Rows whose random numbers are drawn together: bounds temporary arrays to 0.5 MB each.
_ROWS_OF_DRAW = 1 << 16

# If a cluster has less mass, the plain fold runs instead. The kernel computes the shares of a point
# relative to its largest one: those of a cluster that is far from all points fall below 1e-38 or
# 1e-308, the smallest normal number, and vanish. The plain fold computes them relative to the
# largest one of each cluster. 1e-20 and 1e-200 leave room for the spread of the shares within a
# cluster.
_MIN_MASS = {torch.float32: 1e-20, torch.float64: 1e-200}

# Kernels are compiled for up to this many heads of a symmetric layer: each number of heads is one
# more copy of the kernel in the binary.
_MOST_HEADS = 4


@runs(Moments)
def run_moments(points: OpenPoints, fold: Moments) -> Summary:
    _, found = points.run("moments", out={"out": 3 + points.layout.n_features})
    return found[0], found[1], found[2], found[3:]


@runs(NearestSums)
def run_nearest_sums(points: OpenPoints, fold: NearestSums) -> Summary:
    out = {"sums": fold.centers.shape, "masses": len(fold.centers)}
    # Kernels keep running sums, and update them by the points whose label has changed. `fresh`:
    # there are no labels of an earlier iteration, so the sums start again.
    changed, sums, masses = points.run(
        "nearest_sums", ("labels", "previous"), out, centers=fold.centers, fresh=points.fresh
    )
    points.fresh = False
    return sums, masses, torch.tensor(changed)


# For unit vectors |x - c|^2 = 2 - 2 cos: the sum of w cos is the mass less half the spread.
@runs(NearestCosines, finish=lambda fold, raw: (raw[0].sum(), raw[1] - raw[0] / 2))
@runs(NearestDistances, finish=lambda fold, raw: (raw[0].sum(), raw[1]))
def run_nearest_distances(points: OpenPoints, fold: NearestDistances) -> Raw | None:
    columns, k = ("labels", "previous", "distances"), len(fold.centers)
    out = {"spread": k, "masses": k}
    centers = {"centers": fold.centers}
    if fold.returned is not None:
        if isinstance(points.blocks, TensorBlocks):
            centers = {"returned": fold.returned}
        elif not torch.equal(fold.returned, fold.centers.double()):
            # Centers in float64 of rows in float32, which the kernels for sparse rows cannot hold.
            return None
    return points.run("nearest_distances", columns, out, **centers, fresh=points.fresh)[1:]


@runs(Farthest)
def run_farthest(points: OpenPoints, fold: Farthest) -> FarthestPoints:
    blocks, most = points.blocks, min(fold.m, points.layout.n_rows)
    rows = torch.zeros(most, dtype=torch.int64)
    count, away = points.run(
        "farthest", ("labels",), {"distances": most}, centers=fold.centers, rows=rows
    )
    rows = rows[:count]
    weights = torch.ones(len(rows), dtype=torch.float64)
    if blocks.sample_weight is not None:
        weights = blocks.sample_weight[rows].double()
    labels, far = points.state.column("labels")[rows].long(), blocks.take(rows).double()
    return FarthestPoints(away[: len(rows)], rows + blocks.first_row, labels, far, weights)


# `instead`: the kernel has counted the changed labels and has replaced the previous ones, so the
# plain fold, if it runs after the kernel, counts none. The count of the kernel is used.
@runs(
    SoftSums,
    finish=lambda fold, raw: None if raw[2].min() < _MIN_MASS[fold.centers.dtype] else raw,
    instead=lambda summary, raw: (*summary[:-1], raw[-1]),
)
def run_soft_sums(points: OpenPoints, fold: SoftSums) -> Raw | None:
    held = torch.finfo(fold.centers.dtype)
    if not held.tiny <= fold.inverse_temperature <= held.max:  # the kernel holds it in this dtype
        return None
    changed, sums, masses, energy = points.run(
        "soft_sums",
        ("labels", "previous"),
        {"sums": fold.centers.shape, "masses": len(fold.centers), "energy": 1},
        centers=fold.centers,
        inverse_temperature=fold.inverse_temperature,
    )
    # By NumPy: torch would start threads of its own.
    np.copyto(points.array("previous"), points.array("labels"))
    return torch.zeros_like(masses), sums, masses, energy[0], torch.tensor(changed)


@runs(NearestCosts)
def run_nearest_costs(points: OpenPoints, fold: NearestCosts) -> Summary:
    k = len(fold.centers)
    _, sums, masses, costs = points.run(
        "nearest_costs", out={"sums": 2, "masses": k, "costs": k}, centers=fold.centers
    )
    return sums[0], sums[1], masses, costs


def _merge_attention(first: Raw, second: Raw) -> Raw:
    # As the kernel merges leaves: levels are whole numbers in base 2, so that factors are exact.
    levels = [(raw[0] / math.log(2)).round() for raw in (first, second)]
    higher = torch.maximum(*levels)
    one, two = (torch.exp2(level - higher) for level in levels)
    level = torch.where(levels[0] >= levels[1], first[0], second[0])
    masses = one * first[1] + two * second[1]
    return level, masses, one[..., None] * first[2] + two[..., None] * second[2]


@runs(AttentionSums, merge=_merge_attention)
def run_attention_sums(points: OpenPoints, fold: AttentionSums) -> Summary | None:
    heads, (k, d) = fold.heads, fold.centers.shape
    h = len(heads.sharpness)
    if h > _MOST_HEADS:
        return None
    names = ("sharpness", "distance", "log_belonging", "nearest", "second", "belonging")
    numbers = {name: getattr(heads, name) for name in names}
    numbers |= {"centers": fold.centers, "unit": fold.unit}
    out = {"level": (k, h), "masses": (k, h), "sums": (k, h, d)}
    return points.run("attention_sums", out=out, **numbers)[1:]


@runs(DistanceHistogram)
def run_distance_histogram(points: OpenPoints, fold: DistanceHistogram) -> Summary:
    out = {"masses": (len(fold.prefix), 256)}  # a byte of the distance in each round
    return points.run("distance_histogram", _NEAREST, out, prefix=fold.prefix, shift=fold.shift)[1:]


@runs(TrimmedSums)
def run_trimmed_sums(points: OpenPoints, fold: TrimmedSums) -> Summary:
    columns, k = ("labels", "previous", "trimmed", "distances"), len(fold.radius)
    out = {"sums": (k, points.layout.n_features), "masses": k, "objective": 1}
    changed, sums, masses, objective = points.run("trimmed_sums", columns, out, radius=fold.radius)
    return sums, masses, objective[0], torch.tensor(changed)


def _merge_scores(first: Raw, second: Raw) -> Raw:
    # Distances are compared, not scores: different distances may round to the same score.
    least = torch.minimum(first[0], second[0])
    held = (first[0] == least) * first[2] + (second[0] == least) * second[2]
    return least, torch.maximum(first[1], second[1]), held


@runs(HighestScores, finish=lambda fold, raw: raw[1:], merge=_merge_scores)
def run_highest_scores(points: OpenPoints, fold: HighestScores) -> Raw:
    k, gamma = fold.n_clusters, fold.inverse_temperature
    out, least = {"best": k, "masses": k}, torch.zeros(k, dtype=points.layout.dtype)
    _, best, masses = points.run(
        "highest_scores", _NEAREST, out, inverse_temperature=gamma, least=least
    )
    return least, best.masked_fill_(masses == 0, -torch.inf), masses


@runs(SumsAboveThreshold)
def run_sums_above_threshold(points: OpenPoints, fold: SumsAboveThreshold) -> Summary:
    k, gamma = len(fold.threshold), fold.inverse_temperature
    # Kernels are compiled with -ffinite-math-only: infinity becomes the largest number.
    level, out = fold.threshold.nan_to_num(nan=0.0), {"masses": k, "scores": k}
    return points.run(
        "sums_above_threshold", _NEAREST, out, inverse_temperature=gamma, threshold=level
    )[1:]


@runs(RobustSums)
def run_robust_sums(points: OpenPoints, fold: RobustSums) -> Summary:
    k, weigh, radius = fold.n_clusters, fold.weigh, None
    if isinstance(weigh, SoftmaxWeights):
        level, radius = weigh.best, weigh.radius.double().nan_to_num()
    else:
        level = weigh.threshold
    changed, sums, masses, objective = points.run(
        "robust_sums",
        ("labels", "previous", "distances"),
        {"sums": (k, points.layout.n_features), "masses": k, "objective": 1},
        inverse_temperature=weigh.inverse_temperature,
        level=level.nan_to_num(nan=0.0),
        radius=radius,
    )
    return sums, masses, objective[0], torch.tensor(changed)


@runs(NewSeed)
def run_new_seed(points: OpenPoints, fold: NewSeed) -> Summary:
    out = {"masses": points.layout.n_leaves}
    _, masses = points.run("new_seed", _NEAREST, out, seed=fold.seed[0], first=fold.first)
    points.leaf_masses = masses  # the draw of candidates comes next, and begins with the leaves
    return (tree_levels(masses)[-1][0],)


# The kernel reads only rows that may be nearer to a candidate than to their seed, so it knows by
# how much the sum of w d^2 falls, not the sum itself.
@runs(Potential, finish=lambda fold, raw: (fold.now - raw[0],))
def run_potential(points: OpenPoints, fold: Potential) -> Raw:
    out = {"gains": len(fold.candidates)}
    return points.run("potential", _NEAREST, out, candidates=fold.candidates)[1:]


@runs(Oversampling)
def run_oversampling(points: OpenPoints, fold: Oversampling) -> Summary:
    out = {"attracted": fold.known + len(fold.fresh), "mass": 1}
    _, attracted, mass = points.run(
        "oversampling", _NEAREST, out, centers=fold.fresh, known=fold.known
    )
    # The kernel has the distances; rows are drawn by the counter-based noise of torch and NumPy.
    distances, n_rows, ratios, rows = points.state.column("distances"), points.layout.n_rows, [], []
    with one_core():
        for start in range(0, n_rows, _ROWS_OF_DRAW):
            stop = min(start + _ROWS_OF_DRAW, n_rows)
            weights, masses = points.blocks.weights(start, stop), distances[start:stop].double()
            first = points.blocks.first_row + start
            found = fold.ratios(first, masses if weights is None else masses * weights)
            chosen = (found > mass[0]).nonzero()[:, 0]
            ratios.append(found[chosen])
            rows.append(chosen + first)
        return mass[0], torch.cat(ratios), torch.cat(rows), attracted


@runs(MedoidDraw)
def run_medoid_draw(points: OpenPoints, fold: MedoidDraw) -> Summary:
    k = len(fold.centers)
    rows, owned = torch.zeros(k, dtype=torch.int64), torch.zeros(k, dtype=torch.bool)
    changed, best, objective = points.run(
        "medoid_draw",
        ("labels", "previous", "distances"),
        {"best": k, "objective": 1},
        centers=fold.centers,
        seed=fold.seed,
        layer=fold.iteration,
        first_row=points.blocks.first_row,
        penalty=None if fold.separation is None else 2.0 * fold.separation,
        owned=owned,
        rows=rows,
    )
    # -1: no point of this part has weight, and any other part wins. Row 0 is read in its place.
    best.masked_fill_(rows < 0, -torch.inf)
    drawn = points.blocks.take(rows.clamp_(min=0)).double()
    rows += points.blocks.first_row
    return owned, best, rows, drawn, objective[0], torch.tensor(changed)


@runs(NearestRows)
def run_nearest_rows(points: OpenPoints, fold: NearestRows) -> Summary:
    k = len(fold.centers)
    distances, rows = torch.zeros(k, dtype=fold.centers.dtype), torch.zeros(k, dtype=torch.int64)
    points.run("nearest_rows", centers=fold.centers, closest=distances, rows=rows)
    distances.masked_fill_(rows < 0, torch.inf)  # no point has weight
    return distances, rows.clamp_(min=0) + points.blocks.first_row


# A component with a smaller part of the mass has the mass 0, so that the plan computes it from
# logarithms: kernels leave out responsibilities below 2^-46 (2^-75 in float64), together at most
# 2^-46 of the mass, which is 1e-6 of such a component.
_LEAST_SHARE = 1e-8


def mixture_arguments(components: Components) -> dict[str, Any] | None:
    """Return components as kernels take them; None if there are none for this family."""
    kind, means = components.kind, components.means
    if kind.family != "gaussian":
        return None
    factors, precision = components.factors, {"full": 1, "tied": 2}.get(str(kind.covariance), 0)
    if precision == 0:
        factors = (factors if factors.ndim == 2 else factors.reshape(-1, 1)).expand_as(means)
    return {
        "precision": precision,
        "means": means,
        "constants": components.log_normalisers,
        "factors": factors,
    }


def _finish_mixture(fold: MixtureSums, raw: Raw) -> Summary:
    masses, sums, squares, likelihood = raw
    covariance = str(fold.components.kind.covariance)
    if covariance == "spherical":
        squares = squares.sum(dim=1)
    elif covariance not in ("full", "diag"):
        squares = torch.zeros_like(masses)
    faint = masses < _LEAST_SHARE * masses.sum()
    return masses.masked_fill(faint, 0.0), sums, squares, likelihood[0]


@runs(MixtureSums, finish=_finish_mixture)
def run_mixture_sums(points: OpenPoints, fold: MixtureSums) -> Raw | None:
    arguments = mixture_arguments(fold.components)
    if arguments is None:
        return None
    k, d = fold.components.means.shape
    out: dict[str, Any] = {"masses": k, "sums": (k, d), "likelihood": 1}
    if arguments["precision"] < 2:
        out["squares"] = (k, d, d) if arguments["precision"] else (k, d)
    _, masses, sums, likelihood, *squares = points.run("mixture_sums", out=out, **arguments)
    return masses, sums, squares[0] if squares else torch.zeros_like(masses), likelihood


@runs(MixtureLabels)
def run_mixture_labels(points: OpenPoints, fold: MixtureLabels) -> Summary | None:
    arguments = mixture_arguments(fold.components)
    if arguments is None:
        return None
    _, likelihood = points.run("mixture_labels", ("labels",), {"likelihood": 1}, **arguments)
    return (likelihood[0],)


def _assign_two(points: OpenPoints, kernel: str, column: str, centers: Tensor) -> Raw:
    """Write labels and another column; return sums (k, d), masses, errors and utilities (k,)."""
    k, d = centers.shape
    out = {"sums": (k, d), "masses": k, "errors": k, "useful": k}
    return points.run(kernel, ("labels", column), out, centers=centers)[1:]


@runs(ClusterErrors)
def run_cluster_errors(points: OpenPoints, fold: ClusterErrors) -> Summary:
    return _assign_two(points, "cluster_errors", "distances", fold.centers)[:3]


@runs(TwoNearest)
def run_two_nearest(points: OpenPoints, fold: TwoNearest) -> Summary | None:
    if len(fold.centers) < 2:  # there is no second one: the plain fold has infinity there
        return None
    sums, masses, _, useful = _assign_two(points, "two_nearest", "second", fold.centers)
    return sums, masses, useful


@runs(Halves)
def run_halves(points: OpenPoints, fold: Halves) -> Summary:
    splits = fold.points.shape[:2]  # of each cluster, at each of its drawn points
    out = {"sums": fold.points.shape, "masses": splits, "near": splits, "rest": splits}
    return points.run("halves", _NEAREST, out, place=fold.place.int(), points=fold.points)[1:]


# The folds with kernels for sparse rows too, under the same names: those of k-means, soft and
# spherical k-means.
_SPARSE = (Moments, NearestSums, NearestDistances, NearestCosines, SoftSums, NewSeed, Potential)
SPARSE_FOLDS: dict[type, KernelFold] = {fold: FOLDS[fold] for fold in _SPARSE}


def run_masked_sums(points: OpenPoints, fold: MaskedSums) -> Summary:
    """Return the summary of `MaskedSums`; its objective follows from the sums."""
    blocks, centers = points.blocks, fold.centers
    assert isinstance(blocks, MaskedBlocks)
    shape, k = centers.shape, len(centers)
    changed, sums, counts, masses, square = points.run(
        "masked_sums",
        ("labels", "previous"),
        {"sums": shape, "counts": shape, "masses": k, "square": 1},
        centers=centers,
        observed=blocks.observed,
        scaled=blocks.scaled,
        fresh=points.fresh,
    )
    points.fresh = False
    # sum w f |x - c|^2 over the observed values, as `MeansPlan.step` computes it from sums
    exact = centers.double()
    cost = square[0] - 2 * (sums * exact).sum() + (counts * exact.square()).sum()
    return sums, counts, masses, cost.clamp(min=0), torch.tensor(changed)


def run_masked_distances(points: OpenPoints, fold: NearestDistances) -> Raw:
    """Return spreads and masses over observed values; write labels and distances."""
    blocks, k = points.blocks, len(fold.centers)
    assert isinstance(blocks, MaskedBlocks)
    returned = fold.centers.double() if fold.returned is None else fold.returned
    return points.run(
        "masked_distances",
        _NEAREST,
        {"spread": k, "masses": k},
        centers=fold.centers,
        returned=returned,
        observed=blocks.observed,
        scaled=blocks.scaled,
        centered=fold.returned is None,
    )[1:]


# The folds that kernels run on rows with missing values. `Moments` does not compare rows with
# centers: missing values are filled in for it.
MASKED_FOLDS: dict[type, KernelFold] = {
    Moments: FOLDS[Moments],
    MaskedSums: KernelFold(run_masked_sums),
    NearestDistances: KernelFold(
        run_masked_distances, finish=lambda fold, raw: (raw[0].sum(), raw[1])
    ),
}


def run_nearest_sum_changes(points: OpenPoints, fold: NearestSums) -> Raw:
    """Return changes of sums, masses and counts, changed labels, and whether sums start again."""
    k, d = fold.centers.shape
    counts = torch.zeros(k, dtype=torch.int64)
    (changed, fresh), sums, masses = points.run(
        "nearest_sum_changes",
        ("labels", "previous"),
        {"sums": (k, d), "masses": k},
        centers=fold.centers,
        fresh=points.fresh,
        counts=counts,
    )
    points.fresh = False
    return sums, masses, counts, torch.tensor(changed), bool(fresh)


def _merge_changes(first: Raw, second: Raw) -> Raw:
    assert first[-1] == second[-1], "all parts have run the same folds"
    return *(a + b for a, b in zip(first[:-1], second[:-1], strict=True)), first[-1]


# `NearestSums` for a part of the data. Running sums of parts would depend on the cut; changes are
# merged along the tree, and the session of all rows adds them up (`RunningSums`).
SUM_CHANGES = KernelFold(run_nearest_sum_changes, merge=_merge_changes)


def label_sums(points: OpenPoints, n_clusters: int) -> Raw:
    """Return sums, masses and counts by label. Precondition: `SUM_CHANGES` was the last fold."""
    counts = torch.zeros(n_clusters, dtype=torch.int64)
    out = {"sums": (n_clusters, points.layout.n_features), "masses": n_clusters}
    _, sums, masses = points.run("label_sums", ("labels",), out, k=n_clusters, counts=counts)
    return sums, masses, counts
