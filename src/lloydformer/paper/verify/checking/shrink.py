"""Shrink a problem on which a circuit differs, so that the difference can be read by eye."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
from numpy import ndarray

from lloydformer.verify.checking.differences import outcome_of
from lloydformer.verify.checking.trial import FirstDifference, Trial
from lloydformer.verify.problems import Problem
from lloydformer.verify.user_algorithm import AlgorithmError

N_TRIALS = 400
"""Number of smaller problems that are tried at most."""

Change = Callable[[FirstDifference], Iterator[Trial]]
"""Yields simpler trials, those that would simplify most first."""


def shrink(first: FirstDifference) -> FirstDifference:
    """Return a difference of the same kind on a problem as small as greedy changes find."""
    best, budget, again = first, iter(range(N_TRIALS)), True
    while again:
        again = False
        for change in CHANGES:
            while (found := _simplified(best, change, budget)) is not None:
                best, again = found, True
    return best


def _simplified(
    best: FirstDifference, change: Change, budget: Iterator[int]
) -> FirstDifference | None:
    """Return the first simpler difference of the same kind; None if there is none."""
    for trial in change(best):
        if next(budget, None) is None:
            return None
        if (found := _same_kind(trial, best)) is not None:
            return found
    return None


def _same_kind(trial: Trial, best: FirstDifference) -> FirstDifference | None:
    try:
        found = outcome_of(trial).difference
    except AlgorithmError:  # a user's algorithm need not take one point or one center
        return None
    return found if found is not None and found.nature == best.nature else None


def _tiny(best: FirstDifference) -> Iterator[Trial]:
    """A few points and one or two centers on a line, at whole numbers."""
    trial = best.trial
    if trial.recipe.norm is not None or best.compared is None:
        return
    places = (0.0, 1.0, 2.0, 4.0)
    for points in ((0.0, 1.0), (0.0, 2.0), (0.0, 1.0, 3.0), (0.0, 1.0, 2.0, 6.0)):
        for centers in (*((a,) for a in places), *permutations(places, 2)):
            tiny = [np.array(rows)[:, None] for rows in (points, centers)]
            if len(points) + len(centers) < trial.problem.points.size + trial.problem.centers.size:
                yield replace(_with(trial, *tiny), n_layers=1)


def _later_start(best: FirstDifference) -> Iterator[Trial]:
    """One layer from the centers before the difference, or no layer after it."""
    trial = best.trial
    if best.compared is not None and trial.n_layers > 1:
        yield replace(trial, n_layers=1, problem=replace(trial.problem, centers=best.start))
    if best.layer + 1 < trial.n_layers:
        yield replace(trial, n_layers=best.layer + 1)


def _fewer_points(best: FirstDifference) -> Iterator[Trial]:
    problem = best.trial.problem
    if len(problem.points) > len(problem.centers):
        for kept in _without_a_part(len(problem.points)):
            if len(kept) >= len(problem.centers):
                yield _with(best.trial, problem.points[kept], problem.centers)


def _fewer_centers(best: FirstDifference) -> Iterator[Trial]:
    problem = best.trial.problem
    for kept in _without_a_part(len(problem.centers)):
        yield _with(best.trial, problem.points, problem.centers[kept])


def _fewer_features(best: FirstDifference) -> Iterator[Trial]:
    problem = best.trial.problem
    for kept in _without_a_part(problem.points.shape[1]):
        smaller = _on_sphere(best.trial, problem.points[:, kept], problem.centers[:, kept])
        if smaller is not None:
            yield smaller


def _without_a_part(n: int) -> Iterator[ndarray]:
    """Yield the numbers below n without a half, a quarter, ... and without each single one."""
    size = n // 2
    while size:
        for begin in range(0, n, size):
            kept = np.delete(np.arange(n), slice(begin, begin + size))
            if len(kept):
                yield kept
        size //= 2


def _rounder(best: FirstDifference) -> Iterator[Trial]:
    """The numbers near zero, in round units, with few digits."""
    problem = best.trial.problem
    if best.trial.recipe.norm is not None:
        return  # unit vectors
    points, centers = problem.points, problem.centers
    middle, unit = np.round(points.mean(axis=0)), 10.0 ** np.floor(np.log10(problem.spread))
    for origin in (middle, np.zeros_like(middle)):
        for scale in (unit, 1.0):
            for digits in (0, 1, 2):
                moved = [
                    ((rows - origin) / scale).round(digits) + 0.0 for rows in (points, centers)
                ]
                if _length(*moved) < _length(points, centers):
                    yield _with(best.trial, *moved)


def _length(points: ndarray, centers: ndarray) -> int:
    """Return the number of characters of all numbers."""
    return len(repr([points.tolist(), centers.tolist()]))


def _with(trial: Trial, points: ndarray, centers: ndarray) -> Trial:
    return replace(trial, problem=Problem(points, centers, trial.problem.family))


def _on_sphere(trial: Trial, points: ndarray, centers: ndarray) -> Trial | None:
    """Return the trial with unit vectors, if the recipe needs them; None if a row is zero."""
    if trial.recipe.norm is None:
        return _with(trial, points, centers)
    rows = np.concatenate([points, centers])
    if trial.recipe.norm.zero_sum:
        rows = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if lengths.min() < 1e-3:
        return None
    rows = rows / lengths
    return _with(trial, rows[: len(points)], rows[len(points) :])


CHANGES: tuple[Change, ...] = (
    _tiny, _later_start, _fewer_points, _fewer_centers, _fewer_features, _rounder,
)  # fmt: skip
