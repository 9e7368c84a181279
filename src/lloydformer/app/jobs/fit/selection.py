"""Fit each number of clusters, and choose one of them by a criterion."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.app.jobs.fit.automatic import Trials
from lloydformer.app.jobs.fit.result import FitResult, FitRun
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.missing import fill_blocks
from lloydformer.data.sources import OpenedTable
from lloydformer.profiles.assignment import assign_rows
from lloydformer.profiles.sample import Sample, draw_sample

# `gap` and `stability` fit a part of the sample again and again: the rows of it, the references or
# pairs of subsets, and the starts of each fit. Chosen by hand; docs/commands.md names them.
_ROWS = 500
_REPEATS = 10
_STARTS = 3
# Stabilities that differ by less count as equal; then the largest number of clusters wins. Chosen
# by hand.
_NEAR = 0.01


def fit_numbers(
    settings: FitSettings,
    table: OpenedTable,
    blocks: TensorBlocks,
    numbers: Sequence[int],
    callback: Any = None,
    after: Callable[[FitRun], None] = lambda run: None,
) -> FitResult:
    """Choose one of the numbers of clusters by the criterion of the settings, and fit it.

    Scores are of the same sample for every number, so they can be compared. `callback` is the
    estimators' callback, called after each iteration; `after` is called after each fit, or after
    each number is tried on the sample.
    """
    # The same blocks for all fits: they cache the extent of the data.
    blocks = replace(blocks, directions=settings.model(1).compares_directions)
    whole = fill_blocks(blocks)
    # The sample fills in missing values itself: around the origin of rows without any.
    placed = blocks if whole is blocks else replace(blocks, given_origin=whole.origin)
    sample = draw_sample(placed, settings.seed)
    trials = Trials(sample, settings.seed)
    fits = _Fits(settings, table, blocks, sample, callback)
    by_trials = len(numbers) > 1 and settings.select == "auto"
    choose = _choose_by_trials if by_trials else _choose_by_fits
    result, runs = choose(fits, trials, numbers, after)
    evidence = trials.evidence(result.n_clusters)
    return replace(result, runs=tuple(runs), notes=tuple(fits.notes), evidence=evidence)


@dataclass
class _Fits:
    """Fits of one data set with several numbers of clusters, and the warnings of all of them."""

    settings: FitSettings
    table: OpenedTable
    blocks: TensorBlocks
    sample: Sample
    callback: Any
    notes: list[str] = field(default_factory=list)

    def fit(self, k: int) -> FitResult:
        model = self.settings.model(k, callback=self.callback)
        began = time.perf_counter()
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.fit(self.blocks)
        seconds = time.perf_counter() - began
        self.notes += [f"k {k}: {' '.join(str(w.message).split())}" for w in caught]
        assignment = assign_rows(model, self.blocks, model.labels_)
        return FitResult(model, self.table, self.blocks, assignment, self.sample, seconds)

    def describe(self, result: FitResult, selected: float | None) -> FitRun:
        model = result.model
        return FitRun(
            *(result.n_clusters, model.inertia_, result.silhouette, model.n_iter_, result.seconds),
            criterion=self.settings.select,
            selected=selected,
        )


def _choose_by_trials(
    fits: _Fits, trials: Trials, numbers: Sequence[int], after: Callable[[FitRun], None]
) -> tuple[FitResult, list[FitRun]]:
    """Try all numbers on the sample, and fit all rows with the best one.

    The objective of a trial is multiplied to that of all rows.
    """
    share, tried = trials.n_rows / fits.blocks.n_rows, list[FitRun]()
    for k in numbers:
        began = time.perf_counter()
        trial = trials[k]
        seconds = time.perf_counter() - began
        silhouette = trial.silhouette if k > 1 else None
        model = trial.model
        tried.append(FitRun(k, model.inertia_ / share, silhouette, model.n_iter_, seconds))
        after(tried[-1])
    scores, chosen = trials.scores(numbers), trials.choose(numbers)
    result = fits.fit(chosen)
    runs = [
        fits.describe(result, scores.get(chosen))
        if run.k == chosen
        else replace(run, criterion=fits.settings.select, selected=scores.get(run.k))
        for run in tried
    ]
    return result, runs


def _choose_by_fits(
    fits: _Fits, trials: Trials, numbers: Sequence[int], after: Callable[[FitRun], None]
) -> tuple[FitResult, list[FitRun]]:
    """Fit all rows with each number; the criterion chooses one of the fits."""
    settings, points, curve = fits.settings, fits.sample.points, None
    if len(numbers) > 1 and settings.select in ("gap", "stability"):
        rng = np.random.default_rng(settings.seed)
        chosen = np.sort(rng.permutation(len(points))[:_ROWS])
        compute_curve = _gap_curve if settings.select == "gap" else _stability_curve
        with warnings.catch_warnings(action="ignore"):  # of fits that the user did not ask for
            curve = compute_curve(points[torch.from_numpy(chosen)], numbers, settings, rng)
    best: FitResult | None = None
    runs: list[FitRun] = []
    for k in numbers:
        result = fits.fit(k)
        # The silhouette is computed for every fit; other criteria only if they choose.
        selected = None
        if curve is not None:
            selected = curve.values[k] if math.isfinite(curve.values[k]) else None
        elif settings.select == "calinski-harabasz":
            selected = _score(result)
        elif settings.select == "bic":
            selected = result.model.bic(result.blocks)
        run = fits.describe(result, selected)
        # Strictly better: of equal scores the smaller number of clusters is chosen.
        is_better = run.score > max((other.score for other in runs), default=-math.inf)
        if best is None or (is_better if curve is None else k == curve.chosen):
            best = result
        runs.append(run)
        after(run)
    assert best is not None, "numbers is not empty"
    return best, runs


def _score(result: FitResult) -> float | None:
    """Return the Calinski-Harabasz index of a fit."""
    kept = result.kept_sample
    clusters = result.assignment.clusters[result.sample.rows].long()
    return calinski_harabasz(result.sample.points[kept], clusters[kept])


def calinski_harabasz(points: Float[Tensor, "m d"], labels: Tensor) -> float | None:
    r"""Return $\frac{B / (k - 1)}{W / (m - k)}$ (Calinski and Harabasz, 1974).

    B is the dispersion between clusters, W that within them. None for one cluster, or for as many
    as there are points.
    """
    count, n_labels = len(points), len(set(labels.tolist()))
    if not 1 < n_labels < count:
        return None
    within = _dispersion(points, labels)
    between = (points - points.mean(dim=0)).square().sum().item() - within
    return between / (n_labels - 1) / (within / (count - n_labels)) if within > 0 else None


def _dispersion(points: Tensor, labels: Tensor) -> float:
    """Return the sum of squared distances to the means of the clusters; label -1 is left out."""
    clusters = [points[labels == j] for j in set(labels.tolist()) if j >= 0]
    return float(sum((own - own.mean(dim=0)).square().sum().item() for own in clusters))


@dataclass(frozen=True)
class SelectionCurve:
    """A score for each number of clusters, -inf if it has none, and the number that it chooses."""

    values: dict[int, float]
    chosen: int


def _gap_curve(
    points: Tensor, numbers: Sequence[int], settings: FitSettings, rng: np.random.Generator
) -> SelectionCurve:
    r"""Return the gap statistic (Tibshirani, Walther and Hastie, 2001).

    $\mathrm{Gap}(k) = \mathbb{E} \log W_k^{ref} - \log W_k$, where the reference is uniform in the
    box of the principal axes. Chosen is the smallest k whose gap is within a standard error of the
    largest.
    """
    # In the box of the principal axes, references have the shape of the data, but no clusters.
    middle = points.mean(dim=0)
    _, _, axes = torch.linalg.svd(points - middle, full_matrices=False)
    turned = (points - middle) @ axes.T
    low, high = turned.amin(dim=0), turned.amax(dim=0)
    uniform = [torch.from_numpy(rng.random(turned.shape)) for _ in range(_REPEATS)]
    references = [(low + each * (high - low)) @ axes + middle for each in uniform]
    gaps, errors = dict[int, float](), dict[int, float]()
    for k in numbers:
        own = _log_dispersion(points, k, settings)
        others = [_log_dispersion(reference, k, settings) for reference in references]
        gaps[k] = float(np.mean(others)) - own if math.isfinite(own) else -math.inf
        errors[k] = float(np.std(others)) * math.sqrt(1 + 1 / _REPEATS)
    best = max(numbers, key=lambda k: gaps[k])
    enough = gaps[best] - errors[best]
    return SelectionCurve(gaps, next((k for k in numbers if gaps[k] >= enough), best))


def _log_dispersion(points: Tensor, k: int, settings: FitSettings) -> float:
    if k > len(points):
        return math.inf
    model = settings.model(k, n_init=_STARTS).fit(points.numpy())
    within = _dispersion(points, torch.as_tensor(model.labels_))
    return math.log(within) if within > 0 else -math.inf


def _stability_curve(
    points: Tensor, numbers: Sequence[int], settings: FitSettings, rng: np.random.Generator
) -> SelectionCurve:
    """Return how alike clusterings of two subsets are (Ben-Hur, Elisseeff and Guyon, 2002).

    The mean adjusted Rand index of the labels that models of two random subsets, each of 80 % of
    the rows, give to all rows. Chosen is the largest k near the best.
    """
    from sklearn.metrics import adjusted_rand_score

    rows, count = points.numpy(), max(2, int(0.8 * len(points)))

    def draw_subset() -> np.ndarray:
        return rows[np.sort(rng.permutation(len(rows))[:count])]

    # The same subsets for all numbers: their scores differ by the number alone.
    pairs = [(draw_subset(), draw_subset()) for _ in range(_REPEATS)]
    values = dict.fromkeys(numbers, -math.inf)
    for k in (k for k in numbers if 1 < k < count):
        indices = []
        for pair in pairs:
            models = [settings.model(k, n_init=_STARTS).fit(subset) for subset in pair]
            indices.append(adjusted_rand_score(*(model.predict(rows) for model in models)))
        values[k] = float(np.mean(indices))
    best = max(values.values())
    return SelectionCurve(values, max(k for k in numbers if values[k] >= best - _NEAR))
