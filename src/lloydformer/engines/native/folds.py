"""Runs folds by kernels: allocates the arrays of a summary, calls the kernel, returns tensors."""

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
"""Below this mass a soft cluster needs the running maximum of the plain fold."""

_MOST_HEADS = 4
"""Upper limit of the heads of a symmetric layer that kernels are compiled for."""


@dataclass(frozen=True)
class Session:
    """The kernels over some points, and the state of each point."""

    kernels: Any
    state: State
    n_features: int
    leaf: int

    @cached_property
    def labels(self) -> np.ndarray:
        return self.state.labels.numpy()

    @cached_property
    def previous(self) -> np.ndarray:
        return self.state.before.numpy()

    @cached_property
    def distances(self) -> np.ndarray:
        return self.state.distances.numpy()

    @cached_property
    def trimmed(self) -> np.ndarray:
        """Mask of the points outside of the radius of their cluster."""
        return np.zeros(len(self.labels), dtype=np.uint8)

    @property
    def cleared(self) -> bool:
        """The labels of the last iteration were forgotten."""
        return bool(self.previous[0] == np.iinfo(np.int32).min)


def _moments(session: Session, fold: Moments) -> Summary:
    found = _zeros(3 + session.n_features)
    session.kernels.run("moments", out=found.numpy())
    return found[0], found[1], found[2], found[3:]


def _nearest(session: Session, fold: Nearest) -> Summary:
    sums, masses = _zeros(*fold.centers.shape), _zeros(len(fold.centers))
    changed = session.kernels.run(
        "nearest", centers=_array(fold.centers), labels=session.labels, previous=session.previous,
        fresh=session.cleared, sums=sums.numpy(), masses=masses.numpy(),
    )  # fmt: skip
    return sums, masses, torch.tensor(changed)


def _iterations(session: Session, fold: Iterations) -> Summary:
    centers, history = fold.centers.clone().contiguous(), _zeros(fold.max_iter)
    count, _settled = session.kernels.run(
        "iterate", centers=centers.numpy(), labels=session.labels, previous=session.previous,
        fresh=session.cleared, tolerance=fold.tolerance, history=history.numpy(),
    )  # fmt: skip
    return centers, history[:count].tolist()


def _measure(session: Session, fold: Measure) -> Summary:
    spread, masses = _zeros(len(fold.centers)), _zeros(len(fold.centers))
    session.kernels.run(
        "measure", centers=_array(fold.centers), labels=session.labels, previous=session.previous,
        distances=session.distances, spread=spread.numpy(), masses=masses.numpy(),
    )  # fmt: skip
    return spread.sum(), masses - spread / 2 if isinstance(fold, Cosines) else masses


def _shares(session: Session, fold: Shares) -> Summary | None:
    sums, masses, energy = _zeros(*fold.centers.shape), _zeros(len(fold.centers)), _zeros(1)
    changed = session.kernels.run(
        "shares", centers=_array(fold.centers), inverse_temperature=fold.inverse_temperature,
        labels=session.labels, previous=session.previous,
        sums=sums.numpy(), masses=masses.numpy(), energy=energy.numpy(),
    )  # fmt: skip
    if masses.min() < _FAINT[fold.centers.dtype]:
        return None
    np.copyto(session.previous, session.labels)
    return torch.zeros_like(masses), sums, masses, energy[0], torch.tensor(changed)


def _served(session: Session, fold: Served) -> Summary:
    k = len(fold.centers)
    sums, masses, costs = _zeros(2), _zeros(k), _zeros(k)
    session.kernels.run(
        "two_nearest", centers=_array(fold.centers),
        sums=sums.numpy(), masses=masses.numpy(), costs=costs.numpy(),
    )  # fmt: skip
    return sums[0], sums[1], masses, costs


def _attended(session: Session, fold: Attended) -> Summary | None:
    heads, (k, d) = fold.heads, fold.centers.shape
    h = len(heads.sharpness)
    if h > _MOST_HEADS:
        return None
    level, masses, sums = _zeros(k, h), _zeros(k, h), _zeros(k, h, d)
    names = ("sharpness", "distance", "log_belonging", "nearest", "second", "belonging")
    session.kernels.run(
        "attention", centers=_array(fold.centers), unit=fold.unit,
        **{name: _array(getattr(heads, name)) for name in names},
        level=level.numpy(), masses=masses.numpy(), sums=sums.numpy(),
    )  # fmt: skip
    return level, masses, sums


def _histogram(session: Session, fold: Histogram) -> Summary:
    masses = _zeros(len(fold.prefix), 256)
    session.kernels.run(
        "histogram", labels=session.labels, distances=session.distances,
        prefix=_array(fold.prefix), shift=fold.shift, masses=masses.numpy(),
    )  # fmt: skip
    return (masses,)


def _within(session: Session, fold: Within) -> Summary:
    sums, masses, objective = _summed(session, len(fold.radius))
    session.trimmed[:] = (session.previous < 0) & (not session.cleared)
    _encode_trimmed(session, session.previous)
    changed = session.kernels.run(
        "within", labels=session.labels, previous=session.previous, trimmed=session.trimmed,
        distances=session.distances, radius=_array(fold.radius),
        sums=sums.numpy(), masses=masses.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    _encode_trimmed(session, session.labels, session.previous)
    return sums, masses, objective[0], torch.tensor(changed)


def _encode_trimmed(session: Session, *labels: np.ndarray) -> None:
    """Turns the labels of trimmed points into -1 - label, or back: engines store them that way."""
    for values in labels:
        np.subtract(-1, values, out=values, where=session.trimmed.view(bool))


def _best(session: Session, fold: Best) -> Summary:
    best, masses = _zeros(fold.n_clusters), _zeros(fold.n_clusters)
    session.kernels.run(
        "best", labels=session.labels, distances=session.distances,
        inverse_temperature=fold.inverse_temperature, best=best.numpy(), masses=masses.numpy(),
    )  # fmt: skip
    return best.masked_fill_(masses == 0, -torch.inf), masses


def _above(session: Session, fold: Above) -> Summary:
    masses, scores = _zeros(len(fold.threshold)), _zeros(len(fold.threshold))
    threshold = fold.threshold.nan_to_num(nan=0.0, neginf=-1e300, posinf=1e300)
    session.kernels.run(
        "above", labels=session.labels, distances=session.distances,
        inverse_temperature=fold.inverse_temperature, threshold=_array(threshold),
        masses=masses.numpy(), scores=scores.numpy(),
    )  # fmt: skip
    return masses, scores


def _weighted(session: Session, fold: Weighted) -> Summary:
    sums, masses, objective = _summed(session, fold.n_clusters)
    weigh, radius = fold.weigh, None
    if isinstance(weigh, Exponential):
        level, radius = weigh.best, weigh.radius.double().clamp(max=1e300)
    else:
        level = weigh.threshold
    changed = session.kernels.run(
        "weighted", labels=session.labels, previous=session.previous, distances=session.distances,
        inverse_temperature=weigh.inverse_temperature, level=_array(level.nan_to_num(nan=0.0)),
        radius=None if radius is None else _array(radius),
        sums=sums.numpy(), masses=masses.numpy(), objective=objective.numpy(),
    )  # fmt: skip
    return sums, masses, objective[0], torch.tensor(changed)


def _relocation(session: Session, fold: Relocation) -> Summary:
    centers, draws = fold.centers.clone().contiguous(), fold.draws
    before, after = session.kernels.run(
        "relocate", centers=centers.numpy(), seed=draws.seed, layer=draws.layer,
        moved=fold.n_moved, draws=draws.n_draws,
    )  # fmt: skip
    return centers, before, after


def _closer(session: Session, fold: Closer) -> Summary:
    masses = _zeros(-(-len(session.labels) // session.leaf))
    session.kernels.run(
        "closer", seed=_array(fold.seed[0]), first=fold.first, labels=session.labels,
        distances=session.distances, masses=masses.numpy(),
    )  # fmt: skip
    return masses


def _potential(session: Session, fold: Potential) -> Summary:
    gains = _zeros(len(fold.candidates))
    session.kernels.run(
        "gains", candidates=_array(fold.candidates), labels=session.labels,
        distances=session.distances, gains=gains.numpy(),
    )  # fmt: skip
    return (fold.now - gains,)


def _seeds(session: Session, fold: Seeds) -> Summary:
    rows = torch.zeros(len(fold.draws) + 1, dtype=torch.int64)
    rows[0] = fold.first
    count = session.kernels.run(
        "seeds", rows=rows.numpy(), draws=fold.draws, labels=session.labels,
        distances=session.distances,
    )  # fmt: skip
    return rows[:count]


FOLDS: dict[type, Callable[[Session, Any], Summary | None]] = {
    Moments: _moments, Nearest: _nearest, Iterations: _iterations, Measure: _measure,
    Cosines: _measure, Shares: _shares, Served: _served, Attended: _attended,
    Histogram: _histogram, Within: _within, Best: _best, Above: _above, Weighted: _weighted,
    Closer: _closer, Potential: _potential, Seeds: _seeds, Relocation: _relocation,
}  # fmt: skip
"""The function for each fold. It returns None where the plain fold must run instead."""


def _summed(session: Session, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros for sums (k, d), masses (k) and an objective."""
    return _zeros(n_clusters, session.n_features), _zeros(n_clusters), _zeros(1)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def _array(values: Tensor) -> np.ndarray:
    return values.contiguous().numpy()
