"""Shrink a problem on which a circuit differs, so that the difference can be read by eye."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
from numpy import ndarray

from lloydformer.paper.verify.checking.differences import FirstDifference, compare_trial
from lloydformer.paper.verify.checking.user_algorithm import AlgorithmError
from lloydformer.paper.verify.problems import Problem
from lloydformer.paper.verify.trials import Trial

# Number of smaller problems that are tried at most, chosen by hand: a few seconds.
N_TRIALS = 400

# Yields simpler trials, those that would simplify most first.
Change = Callable[[FirstDifference], Iterator[Trial]]


def shrink(first: FirstDifference) -> FirstDifference:
    """Return a difference of the same kind on a problem as small as greedy changes find."""
    # an iterator shared by all changes: the budget is of all trials together
    best, budget, has_improved = first, iter(range(N_TRIALS)), True
    while has_improved:
        has_improved = False
        for change in CHANGES:
            while (simpler := _simplify(best, change, budget)) is not None:
                best, has_improved = simpler, True
    return best


def _simplify(
    best: FirstDifference, change: Change, budget: Iterator[int]
) -> FirstDifference | None:
    """Return the first simpler difference of the same nature; None if there is none."""
    for trial in change(best):
        if next(budget, None) is None:
            return None
        try:
            found = compare_trial(trial).difference
        except AlgorithmError:  # a user's algorithm need not take one point or one center
            continue
        if found is not None and found.nature == best.nature:
            return found
    return None


def try_tiny_problems(best: FirstDifference) -> Iterator[Trial]:
    """Yield a few points and one or two centers on a line, at whole numbers."""
    trial = best.trial
    if trial.recipe.norm is not None or best.compared is None:
        return
    places = (0.0, 1.0, 2.0, 4.0)
    for points in ((0.0, 1.0), (0.0, 2.0), (0.0, 1.0, 3.0), (0.0, 1.0, 2.0, 6.0)):
        for centers in (*((a,) for a in places), *permutations(places, 2)):
            tiny = [np.array(rows)[:, None] for rows in (points, centers)]
            if len(points) + len(centers) < trial.problem.points.size + trial.problem.centers.size:
                yield replace(_with_problem(trial, *tiny), n_layers=1)


def remove_layers(best: FirstDifference) -> Iterator[Trial]:
    """Yield one layer from the centers before the difference, or no layer after it."""
    trial = best.trial
    if best.compared is not None and trial.n_layers > 1:
        yield replace(trial, n_layers=1, problem=replace(trial.problem, centers=best.start))
    if best.layer + 1 < trial.n_layers:
        yield replace(trial, n_layers=best.layer + 1)


def remove_points(best: FirstDifference) -> Iterator[Trial]:
    problem = best.trial.problem
    if len(problem.points) > len(problem.centers):
        for kept in _leave_out_parts(len(problem.points)):
            if len(kept) >= len(problem.centers):
                yield _with_problem(best.trial, problem.points[kept], problem.centers)


def remove_centers(best: FirstDifference) -> Iterator[Trial]:
    problem = best.trial.problem
    for kept in _leave_out_parts(len(problem.centers)):
        yield _with_problem(best.trial, problem.points, problem.centers[kept])


def remove_features(best: FirstDifference) -> Iterator[Trial]:
    """Yield trials with fewer features; of unit vectors if the recipe needs them."""
    problem, norm = best.trial.problem, best.trial.recipe.norm
    for kept in _leave_out_parts(problem.points.shape[1]):
        rows = np.concatenate([problem.points, problem.centers])[:, kept]
        if norm is not None:
            if norm.zero_sum:
                rows = rows - rows.mean(axis=1, keepdims=True)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            if lengths.min() < 1e-3:
                continue  # a row that is nearly zero has no direction
            rows = rows / lengths
        yield _with_problem(best.trial, *np.split(rows, [len(problem.points)]))


def _leave_out_parts(n: int) -> Iterator[ndarray]:
    """Yield the numbers below n without a half, a quarter, ... and without each single one."""
    size = n // 2
    while size:
        for begin in range(0, n, size):
            kept = np.delete(np.arange(n), slice(begin, begin + size))
            if len(kept):
                yield kept
        size //= 2


def round_numbers(best: FirstDifference) -> Iterator[Trial]:
    """Yield the numbers near zero, in round units, with few digits."""
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
                if _text_length(*moved) < _text_length(points, centers):
                    yield _with_problem(best.trial, *moved)


def _text_length(points: ndarray, centers: ndarray) -> int:
    """Return the number of characters of all numbers."""
    return len(repr([points.tolist(), centers.tolist()]))


def _with_problem(trial: Trial, points: ndarray, centers: ndarray) -> Trial:
    return replace(trial, problem=Problem(points, centers, trial.problem.family))


# Those that remove most come first: each trial runs circuit and algorithm again.
CHANGES: tuple[Change, ...] = (
    try_tiny_problems,
    remove_layers,
    remove_points,
    remove_centers,
    remove_features,
    round_numbers,
)
