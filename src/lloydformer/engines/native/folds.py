"""Which kernel runs which fold: arrays for its summary, the call, and tensors back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.numerics.tree import tree_levels
from lloydformer.plans.assign import Cosines, Measure, Moments, Nearest
from lloydformer.plans.robust import Above, Best, Exponential, Weighted
from lloydformer.plans.seeding import NewSeed, Potential
from lloydformer.plans.selection import Histogram
from lloydformer.plans.soft import Shares
from lloydformer.plans.symmetric import AttentionSums, NearestCosts
from lloydformer.plans.trimmed import Within

Summary = Any

_FAINT = {torch.float32: 1e-20, torch.float64: 1e-200}
"""A soft cluster with less mass needs the running maximum of the plain fold."""

_MOST_HEADS = 4
"""Kernels are compiled for so many heads of a symmetric layer."""


def _moments(points: OpenPoints, fold: Moments) -> Summary:
    found = _zeros(3 + points.layout.n_features)
    points.kernels.moments(found.numpy())
    return found[0], found[1], found[2], found[3:]


def _nearest(points: OpenPoints, fold: Nearest) -> Summary:
    sums, masses = _zeros(*fold.centers.shape), _zeros(len(fold.centers))
    changed = points.kernels.nearest(
        _array(fold.centers), points.array("labels"), points.array("previous"), points.fresh,
        sums.numpy(), masses.numpy(),
    )  # fmt: skip
    points.fresh = False
    return sums, masses, torch.tensor(changed)


def _measure(points: OpenPoints, fold: Measure) -> Summary:
    spread, masses = _zeros(len(fold.centers)), _zeros(len(fold.centers))
    points.kernels.measure(
        _array(fold.centers), points.array("labels"), points.array("previous"), points.array("distances"),
        spread.numpy(), masses.numpy(),
    )  # fmt: skip
    return spread.sum(), masses - spread / 2 if isinstance(fold, Cosines) else masses


def _shares(points: OpenPoints, fold: Shares) -> Summary | None:
    sums, masses, energy = _zeros(*fold.centers.shape), _zeros(len(fold.centers)), _zeros(1)
    changed = points.kernels.shares(
        _array(fold.centers), fold.inverse_temperature, points.array("labels"), points.array("previous"),
        sums.numpy(), masses.numpy(), energy.numpy(),
    )  # fmt: skip
    if masses.min() < _FAINT[fold.centers.dtype]:
        return None
    np.copyto(points.array("previous"), points.array("labels"))
    return torch.zeros_like(masses), sums, masses, energy[0], torch.tensor(changed)


def _nearest_costs(points: OpenPoints, fold: NearestCosts) -> Summary:
    k = len(fold.centers)
    sums, masses, costs = _zeros(2), _zeros(k), _zeros(k)
    points.kernels.served(_array(fold.centers), sums.numpy(), masses.numpy(), costs.numpy())
    return sums[0], sums[1], masses, costs


def _attention_sums(points: OpenPoints, fold: AttentionSums) -> Summary | None:
    heads, (k, d) = fold.heads, fold.centers.shape
    h = len(heads.sharpness)
    if h > _MOST_HEADS:
        return None
    level, masses, sums = _zeros(k, h), _zeros(k, h), _zeros(k, h, d)
    numbers = (heads.sharpness, heads.distance, heads.log_belonging, heads.nearest, heads.second,
               heads.belonging)  # fmt: skip
    points.kernels.attended(
        _array(fold.centers), fold.unit, *map(_array, numbers),
        level.numpy(), masses.numpy(), sums.numpy(),
    )  # fmt: skip
    return level, masses, sums


def _histogram(points: OpenPoints, fold: Histogram) -> Summary:
    masses = _zeros(len(fold.prefix), 256)
    points.kernels.histogram(
        points.array("labels"),
        points.array("distances"),
        _array(fold.prefix),
        fold.shift,
        masses.numpy(),
    )
    return (masses,)


def _within(points: OpenPoints, fold: Within) -> Summary:
    sums, masses, objective = _summed(points, len(fold.radius))
    changed = points.kernels.within(
        points.array("labels"), points.array("previous"), points.array("distances"), _array(fold.radius),
        sums.numpy(), masses.numpy(), objective.numpy(),
    )  # fmt: skip
    labels, mask = points.array("labels"), points.array("trimmed")
    np.less(labels, 0, out=mask)
    labels[mask] = -1 - labels[mask]
    return sums, masses, objective[0], torch.tensor(changed)


def _best(points: OpenPoints, fold: Best) -> Summary:
    best, masses = _zeros(fold.n_clusters), _zeros(fold.n_clusters)
    points.kernels.best(
        points.array("labels"),
        points.array("distances"),
        fold.inverse_temperature,
        best.numpy(),
        masses.numpy(),
    )
    return best.masked_fill_(masses == 0, -torch.inf), masses


def _above(points: OpenPoints, fold: Above) -> Summary:
    masses, scores = _zeros(len(fold.threshold)), _zeros(len(fold.threshold))
    threshold = fold.threshold.nan_to_num(nan=0.0, neginf=-1e300, posinf=1e300)
    points.kernels.above(
        points.array("labels"), points.array("distances"), fold.inverse_temperature, _array(threshold),
        masses.numpy(), scores.numpy(),
    )  # fmt: skip
    return masses, scores


def _weighted(points: OpenPoints, fold: Weighted) -> Summary:
    sums, masses, objective = _summed(points, fold.n_clusters)
    weigh, radius = fold.weigh, None
    if isinstance(weigh, Exponential):
        level, radius = weigh.best, weigh.radius.double().clamp(max=1e300)
    else:
        level = weigh.threshold
    changed = points.kernels.weighted(
        points.array("labels"), points.array("previous"), points.array("distances"), weigh.inverse_temperature,
        _array(level.nan_to_num(nan=0.0)), None if radius is None else _array(radius),
        sums.numpy(), masses.numpy(), objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _new_seed(points: OpenPoints, fold: NewSeed) -> Summary:
    layout, masses = points.layout, _zeros(points.layout.n_leaves)
    points.kernels.closer(
        _array(fold.seed[0]), fold.first, points.array("labels"), points.array("distances"),
        layout.leaf, masses.numpy(),
    )  # fmt: skip
    points.leaf_masses = masses
    return (tree_levels(masses)[-1][0],)


def _potential(points: OpenPoints, fold: Potential) -> Summary:
    gains = _zeros(len(fold.candidates))
    points.kernels.gains(
        _array(fold.candidates), points.array("labels"), points.array("distances"), gains.numpy()
    )
    return (fold.now - gains,)


FOLDS: dict[type, Callable[[OpenPoints, Any], Summary | None]] = {
    Moments: _moments, Nearest: _nearest, Measure: _measure, Cosines: _measure, Shares: _shares,
    NearestCosts: _nearest_costs, AttentionSums: _attention_sums, Histogram: _histogram,
    Within: _within, Best: _best, Above: _above, Weighted: _weighted, NewSeed: _new_seed,
    Potential: _potential,
}  # fmt: skip
"""Kernels by the fold that they run; they return None where the plain fold must run instead."""


def _summed(points: OpenPoints, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros for sums (k, d), masses (k) and an objective."""
    return _zeros(n_clusters, points.layout.n_features), _zeros(n_clusters), _zeros(1)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def _array(values: Tensor) -> np.ndarray:
    return values.contiguous().numpy()
