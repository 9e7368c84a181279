"""Which kernel runs which fold: arrays for its summary, the call, and tensors back."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.contract import State
from lloydformer.plans.assign import Cosines, Measure, Moments, Nearest
from lloydformer.plans.means import Iterations
from lloydformer.plans.relocating import Relocation
from lloydformer.plans.robust import Above, Best, Exponential, Weighted
from lloydformer.plans.selection import Histogram
from lloydformer.plans.soft import Shares
from lloydformer.plans.symmetric import Attended, Served
from lloydformer.plans.trimmed import Within
from lloydformer.solving.seeding.plusplus import Closer, Potential, Seeds

Summary = Any

_FAINT = {torch.float32: 1e-20, torch.float64: 1e-200}
"""A soft cluster with less mass needs the running maximum of the plain fold."""

_MOST_HEADS = 4
"""Kernels are compiled for so many heads of a symmetric layer."""


@dataclass(frozen=True)
class Session:
    """The kernels for some points, and what is known of each point."""

    kernels: Any
    state: State
    n_features: int
    leaf: int

    @cached_property
    def labels(self) -> np.ndarray:
        return self.state.labels.numpy()

    @cached_property
    def before(self) -> np.ndarray:
        return self.state.before.numpy()

    @cached_property
    def distances(self) -> np.ndarray:
        return self.state.distances.numpy()

    @property
    def cleared(self) -> bool:
        return bool(self.before[0] == np.iinfo(np.int32).min)


def _moments(session: Session, fold: Moments) -> Summary:
    found = _zeros(3 + session.n_features)
    session.kernels.moments(found.numpy())
    return found[0], found[1], found[2], found[3:]


def _nearest(session: Session, fold: Nearest) -> Summary:
    sums, masses = _zeros(*fold.centers.shape), _zeros(len(fold.centers))
    changed = session.kernels.nearest(
        _array(fold.centers), session.labels, session.before, session.cleared,
        sums.numpy(), masses.numpy(),
    )  # fmt: skip
    return sums, masses, torch.tensor(changed)


def _iterations(session: Session, fold: Iterations) -> Summary:
    centers, history = fold.centers.clone().contiguous(), _zeros(fold.max_iter)
    count = session.kernels.iterate(
        centers.numpy(), session.labels, session.before, fold.tolerance, history.numpy()
    )
    return centers, history[:count].tolist()


def _measure(session: Session, fold: Measure) -> Summary:
    spread, masses = _zeros(len(fold.centers)), _zeros(len(fold.centers))
    session.kernels.measure(
        _array(fold.centers), session.labels, session.before, session.distances,
        spread.numpy(), masses.numpy(),
    )  # fmt: skip
    return spread.sum(), masses - spread / 2 if isinstance(fold, Cosines) else masses


def _shares(session: Session, fold: Shares) -> Summary | None:
    sums, masses, energy = _zeros(*fold.centers.shape), _zeros(len(fold.centers)), _zeros(1)
    changed = session.kernels.shares(
        _array(fold.centers), fold.inverse_temperature, session.labels, session.before,
        sums.numpy(), masses.numpy(), energy.numpy(),
    )  # fmt: skip
    if masses.min() < _FAINT[fold.centers.dtype]:
        return None
    np.copyto(session.before, session.labels)
    return torch.zeros_like(masses), sums, masses, energy[0], torch.tensor(changed)


def _served(session: Session, fold: Served) -> Summary:
    k = len(fold.centers)
    sums, masses, costs = _zeros(2), _zeros(k), _zeros(k)
    session.kernels.served(_array(fold.centers), sums.numpy(), masses.numpy(), costs.numpy())
    return sums[0], sums[1], masses, costs


def _attended(session: Session, fold: Attended) -> Summary | None:
    heads, (k, d) = fold.heads, fold.centers.shape
    h = len(heads.sharpness)
    if h > _MOST_HEADS:
        return None
    level, masses, sums = _zeros(k, h), _zeros(k, h), _zeros(k, h, d)
    numbers = (heads.sharpness, heads.distance, heads.log_belonging, heads.nearest, heads.second,
               heads.belonging)  # fmt: skip
    session.kernels.attended(
        _array(fold.centers), fold.unit, *map(_array, numbers),
        level.numpy(), masses.numpy(), sums.numpy(),
    )  # fmt: skip
    return level, masses, sums


def _histogram(session: Session, fold: Histogram) -> Summary:
    masses = _zeros(len(fold.prefix), 256)
    session.kernels.histogram(
        session.labels, session.distances, _array(fold.prefix), fold.shift, masses.numpy()
    )
    return (masses,)


def _within(session: Session, fold: Within) -> Summary:
    sums, masses, objective = _summed(session, len(fold.radius))
    changed = session.kernels.within(
        session.labels, session.before, session.distances, _array(fold.radius),
        sums.numpy(), masses.numpy(), objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _best(session: Session, fold: Best) -> Summary:
    best, masses = _zeros(fold.n_clusters), _zeros(fold.n_clusters)
    session.kernels.best(
        session.labels, session.distances, fold.inverse_temperature, best.numpy(), masses.numpy()
    )
    return best.masked_fill_(masses == 0, -torch.inf), masses


def _above(session: Session, fold: Above) -> Summary:
    masses, scores = _zeros(len(fold.threshold)), _zeros(len(fold.threshold))
    threshold = fold.threshold.nan_to_num(nan=0.0, neginf=-1e300, posinf=1e300)
    session.kernels.above(
        session.labels, session.distances, fold.inverse_temperature, _array(threshold),
        masses.numpy(), scores.numpy(),
    )  # fmt: skip
    return masses, scores


def _weighted(session: Session, fold: Weighted) -> Summary:
    sums, masses, objective = _summed(session, fold.n_clusters)
    weigh, radius = fold.weigh, None
    if isinstance(weigh, Exponential):
        level, radius = weigh.best, weigh.radius.double().clamp(max=1e300)
    else:
        level = weigh.threshold
    changed = session.kernels.weighted(
        session.labels, session.before, session.distances, weigh.inverse_temperature,
        _array(level.nan_to_num(nan=0.0)), None if radius is None else _array(radius),
        sums.numpy(), masses.numpy(), objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _relocation(session: Session, fold: Relocation) -> Summary:
    centers, draws = fold.centers.clone().contiguous(), fold.draws
    before, after = session.kernels.relocate(
        centers.numpy(), draws.seed, draws.layer, fold.n_moved, draws.n_draws
    )
    return centers, before, after


def _closer(session: Session, fold: Closer) -> Summary:
    masses = _zeros(-(-len(session.labels) // session.leaf))
    session.kernels.closer(
        _array(fold.seed[0]), fold.first, session.labels, session.distances, session.leaf,
        masses.numpy(),
    )  # fmt: skip
    return masses


def _potential(session: Session, fold: Potential) -> Summary:
    gains = _zeros(len(fold.candidates))
    session.kernels.gains(_array(fold.candidates), session.labels, session.distances, gains.numpy())
    return (fold.now - gains,)


def _seeds(session: Session, fold: Seeds) -> Summary:
    rows = torch.zeros(len(fold.draws) + 1, dtype=torch.int64)
    rows[0] = fold.first
    count = session.kernels.seeds(rows.numpy(), fold.draws, session.labels, session.distances)
    return rows[:count]


FOLDS: dict[type, Callable[[Session, Any], Summary | None]] = {
    Moments: _moments, Nearest: _nearest, Iterations: _iterations, Measure: _measure,
    Cosines: _measure, Shares: _shares, Served: _served, Attended: _attended,
    Histogram: _histogram, Within: _within, Best: _best, Above: _above, Weighted: _weighted,
    Closer: _closer, Potential: _potential, Seeds: _seeds, Relocation: _relocation,
}  # fmt: skip
"""Kernels by the fold that they run; None is returned where the plain fold must."""


def _summed(session: Session, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros for sums (k, d), masses (k) and an objective."""
    return _zeros(n_clusters, session.n_features), _zeros(n_clusters), _zeros(1)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def _array(values: Tensor) -> np.ndarray:
    return values.contiguous().numpy()
