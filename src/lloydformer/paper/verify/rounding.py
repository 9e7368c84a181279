"""Decisions and results of an algorithm that rounding can change.

Margins, error bounds and exact numbers for decisions; and how much results change if the input
changes by rounding errors. Two correct computations may differ by that much: where two points are
equally far from a center and one of them is left out, rounding decides which.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from lloydformer.algorithms import Algorithm
from lloydformer.algorithms.contract import squared_distances
from lloydformer.paper.verify.problems import Problem

# Bits that exact scores leave unused, so that sums and halves of them are exact as well.
SLACK_BITS = 6

# Chosen by hand: the size of perturbations in units of the last place, their number, and by how
# many times what they show results may differ. Too large values would hide small mistakes; those
# planted in tests/paper/verify/checking/test_differences.py are found with these.
N_ULPS, N_DRAWS, FACTOR = 64, 4, 100.0


def assignment_scores(
    algorithm: Algorithm, points: ndarray, centers: ndarray
) -> Float[ndarray, "n k"]:
    """Return the scores by which points choose centers: larger is better.

    They are those of the algorithm's method `scores(points, centers)`, if it has one, and minus
    squared distances otherwise.
    """
    if hasattr(algorithm, "scores"):
        return np.asarray(algorithm.scores(points, centers), float)
    return -squared_distances(points, centers)


def margins(scores: Float[ndarray, "n k"]) -> Float[ndarray, " n"]:
    """Return the difference of each point's two best scores; infinity if there is one center."""
    best = np.sort(scores, axis=1)[:, ::-1]
    return best[:, 0] - best[:, 1] if best.shape[1] > 1 else np.full(len(best), np.inf)


def distance_rounding(points: ndarray, centers: ndarray, dtype: torch.dtype) -> float:
    """Return the rounding error of a difference of squared distances.

    16 (d + 3) eps max(|x|^2 + |c|^2), after centering: each of the d products and sums rounds
    once, and the factor 16 covers the order of the sums.
    """
    origin = points.mean(axis=0)
    largest = sum(((rows - origin) ** 2).sum(axis=1).max() for rows in (points, centers))
    return 16 * (points.shape[1] + 3) * torch.finfo(dtype).eps * float(largest)


def score_rounding(
    algorithm: Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype
) -> float:
    """Return the rounding error of a difference of `assignment_scores`."""
    if not hasattr(algorithm, "scores"):
        return distance_rounding(points, centers, dtype)
    largest = np.abs(assignment_scores(algorithm, points, centers)).max()
    return 16 * (points.shape[1] + 3) * torch.finfo(dtype).eps * float(largest)


def are_exact(algorithm: Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype) -> bool:
    """Return whether squared distances and dot products are exact, whatever the order of sums.

    Those of whole numbers and of quarters that are not large are. Points at exactly the same
    distance of two centers are then tied in every correct computation. Nothing is known of an
    algorithm's own scores.
    """
    if hasattr(algorithm, "scores"):
        return False
    quarters = 4 * np.concatenate([points, centers])
    largest = points.shape[1] * (2 * np.abs(quarters).max()) ** 2
    bits = -np.log2(torch.finfo(dtype).eps) - SLACK_BITS
    return bool((quarters == np.round(quarters)).all() and largest < 2.0**bits)


def sure_assignments(
    algorithm: Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype
) -> Bool[ndarray, " n"]:
    """Return the mask of the points whose assignment rounding cannot change.

    The margin between their two best centers exceeds the rounding error, or all numbers are exact.
    """
    if are_exact(algorithm, points, centers, dtype):
        return np.ones(len(points), bool)
    scores = assignment_scores(algorithm, points, centers)
    return margins(scores) > score_rounding(algorithm, points, centers, dtype)


def share_variation(
    algorithm: Algorithm, problem: Problem, centers: ndarray, dtype: torch.dtype
) -> Float[ndarray, " n"]:
    """Return how much the shares of each point may differ because of rounding."""
    expected = algorithm.assign(problem.points, centers)
    changes = [
        np.abs(algorithm.assign(points, moved) - expected).max(axis=1)
        for points, moved in _perturb(problem, centers, dtype)
    ]
    return FACTOR * np.max(changes, axis=0)


def center_variation(
    update: Callable[[ndarray, ndarray], ndarray],
    problem: Problem,
    centers: ndarray,
    dtype: torch.dtype,
) -> float:
    """Return how much new centers may differ because of rounding, in spreads.

    update: the new centers, from points and centers.
    """
    expected = update(problem.points, centers)
    changes = [
        np.abs(update(points, moved) - expected).max()
        for points, moved in _perturb(problem, centers, dtype)
    ]
    return FACTOR * float(np.max(changes)) / problem.spread


def _perturb(
    problem: Problem, centers: ndarray, dtype: torch.dtype
) -> Iterator[tuple[ndarray, ndarray]]:
    """Yield points and centers with random errors of a few units of the last place."""
    rng = np.random.default_rng(0)
    size = N_ULPS * torch.finfo(dtype).eps * (problem.spread + np.abs(problem.points).max())
    for _ in range(N_DRAWS):
        points, moved = (
            rows + size * rng.normal(size=rows.shape) for rows in (problem.points, centers)
        )
        yield points, moved
