"""How the number of clusters is chosen: silhouette, Calinski-Harabasz, gap or stability."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.sample import Sample
from lloydformer.jobs.fit.settings import FitSettings

_ROWS = 500
"""Rows of the sample that `gap` and `stability` fit again and again."""
_REPEATS = 10
"""References of `gap`, and pairs of subsets of `stability`."""
_STARTS = 3
_NEAR = 0.01
"""Stabilities that differ by less count as equal; then the largest number of clusters wins."""


@dataclass(frozen=True)
class SelectionCurve:
    """A score for each number of clusters, and the number that it chooses."""

    values: dict[int, float | None]
    chosen: int


def score_of(criterion: str, result: FitResult) -> float | None:
    """The score of a fit on the sample: its silhouette or its Calinski-Harabasz index."""
    if criterion == "calinski-harabasz":
        clusters = result.assignment.clusters[result.sample.rows].long()
        kept = torch.ones_like(clusters, dtype=torch.bool)
        if result.assignment.left_out is not None:
            kept = ~result.assignment.left_out[result.sample.rows]
        return calinski_harabasz(result.sample.points[kept], clusters[kept])
    return result.silhouette


def calinski_harabasz(points: Float[Tensor, "m d"], labels: Tensor) -> float | None:
    r"""Return $\frac{B / (k - 1)}{W / (m - k)}$ (Calinski and Harabasz, 1974).

    B is the dispersion between clusters, W that within them. None for one cluster, or for as many
    as there are points.
    """
    count, found = len(points), len(set(labels.tolist()))
    if not 1 < found < count:
        return None
    within = _within(points, labels)
    between = (points - points.mean(dim=0)).square().sum().item() - within
    return between / (found - 1) / (within / (count - found)) if within > 0 else None


def _within(points: Tensor, labels: Tensor) -> float:
    """The sum of squared distances to the means of the clusters; label -1 is left out."""
    kept = [points[labels == j] for j in set(labels.tolist()) if j >= 0]
    return float(sum((own - own.mean(dim=0)).square().sum().item() for own in kept))


def sampled_curve(
    criterion: str, sample: Sample, numbers: Sequence[int], settings: FitSettings, seed: int
) -> SelectionCurve | None:
    """The curve of `gap` or `stability`, from fits to a sample; None for the other criteria."""
    if criterion not in ("gap", "stability"):
        return None
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(sample.points))[:_ROWS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = sample.points[torch.from_numpy(chosen)]
        curve = _gap if criterion == "gap" else _stability
        return curve(points, numbers, settings, rng)


def _gap(
    points: Tensor, numbers: Sequence[int], settings: FitSettings, rng: np.random.Generator
) -> SelectionCurve:
    r"""The gap statistic (Tibshirani, Walther and Hastie, 2001).

    $\mathrm{Gap}(k) = \mathbb{E} \log W_k^{ref} - \log W_k$, where the reference is uniform in the
    box of the principal axes. Chosen is the smallest k whose gap is within a standard error of the
    largest.
    """
    references = [_reference(points, rng) for _ in range(_REPEATS)]
    gaps: dict[int, float | None] = {}
    errors: dict[int, float] = {}
    for k in numbers:
        own = _log_within(points, k, settings)
        others = [_log_within(reference, k, settings) for reference in references]
        gaps[k] = float(np.mean(others)) - own if math.isfinite(own) else None
        errors[k] = float(np.std(others)) * math.sqrt(1 + 1 / _REPEATS)
    known = [k for k in numbers if gaps[k] is not None]
    best = max(known or numbers, key=lambda k: _known(gaps, k))
    enough = _known(gaps, best) - errors[best]
    return SelectionCurve(gaps, next((k for k in known if _known(gaps, k) >= enough), best))


def _known(values: dict[int, float | None], k: int) -> float:
    value = values[k]
    return -math.inf if value is None else value


def _reference(points: Tensor, rng: np.random.Generator) -> Tensor:
    """As many points, uniform in the box of the principal axes."""
    middle = points.mean(dim=0)
    _, _, axes = torch.linalg.svd(points - middle, full_matrices=False)
    turned = (points - middle) @ axes.T
    low, high = turned.amin(dim=0), turned.amax(dim=0)
    drawn = torch.from_numpy(rng.random(turned.shape))
    return (low + drawn * (high - low)) @ axes + middle


def _log_within(points: Tensor, k: int, settings: FitSettings) -> float:
    if k > len(points):
        return math.inf
    model = settings.few_starts(k, _STARTS).fit(points.numpy())
    within = _within(points, torch.as_tensor(model.labels_))
    return math.log(within) if within > 0 else -math.inf


def _stability(
    points: Tensor, numbers: Sequence[int], settings: FitSettings, rng: np.random.Generator
) -> SelectionCurve:
    """How alike the clusterings of two random subsets are (Ben-Hur, Elisseeff and Guyon, 2002).

    The mean adjusted Rand index of the labels that models of two subsets, each of 80 % of the rows,
    give to all rows. Chosen is the largest k near the best.
    """
    from sklearn.metrics import adjusted_rand_score

    rows, count = points.numpy(), max(2, int(0.8 * len(points)))
    pairs = [[np.sort(rng.permutation(len(rows))[:count]) for _ in range(2)]
             for _ in range(_REPEATS)]  # fmt: skip
    values: dict[int, float | None] = {}
    for k in numbers:
        values[k] = None
        if 1 < k < count:
            labels = [[settings.few_starts(k, _STARTS).fit(rows[part]).predict(rows)
                       for part in pair] for pair in pairs]  # fmt: skip
            values[k] = float(np.mean([adjusted_rand_score(*pair) for pair in labels]))
    best = max(_known(values, k) for k in numbers)
    return SelectionCurve(
        values, max((k for k in numbers if _known(values, k) >= best - _NEAR), default=numbers[0])
    )
