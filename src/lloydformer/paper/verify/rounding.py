"""Which decisions of an algorithm rounding can change: margins, error bounds, exact numbers."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.contract import squared_distances

SLACK_BITS = 6
"""Bits that exact scores leave unused, so that sums and halves of them are exact as well."""


def assignment_scores(
    algorithm: algorithms.Algorithm, points: ndarray, centers: ndarray
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


def rounding(points: ndarray, centers: ndarray, dtype: torch.dtype) -> float:
    """Return the rounding error of a difference of scores: 16 (d + 3) eps max(|x|^2 + |c|^2)."""
    origin = points.mean(axis=0)
    largest = ((points - origin) ** 2).sum(axis=1).max() + ((centers - origin) ** 2).sum(
        axis=1
    ).max()
    return 16 * (points.shape[1] + 3) * torch.finfo(dtype).eps * float(largest)


def score_rounding(
    algorithm: algorithms.Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype
) -> float:
    """Return the rounding error of a difference of `assignment_scores`."""
    if not hasattr(algorithm, "scores"):
        return rounding(points, centers, dtype)
    largest = np.abs(assignment_scores(algorithm, points, centers)).max()
    return 16 * (points.shape[1] + 3) * torch.finfo(dtype).eps * float(largest)


def are_exact(
    algorithm: algorithms.Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype
) -> bool:
    """Are squared distances and dot products exact in this dtype, whatever the order of sums?

    So are those of whole numbers and of quarters that are not large. Points at exactly the same
    distance of two centers are then tied in every correct computation. Nothing is known of an
    algorithm's own scores.
    """
    if hasattr(algorithm, "scores"):
        return False
    rows = 4 * np.concatenate([points, centers])
    largest = points.shape[1] * (2 * np.abs(rows).max()) ** 2
    bits = -np.log2(torch.finfo(dtype).eps) - SLACK_BITS
    return bool((rows == np.round(rows)).all() and largest < 2.0**bits)


def sure_assignments(
    algorithm: algorithms.Algorithm, points: ndarray, centers: ndarray, dtype: torch.dtype
) -> Bool[ndarray, " n"]:
    """Return the mask of the points whose assignment rounding cannot change.

    The margin between their two best centers exceeds the rounding error, or all numbers are exact.
    """
    if are_exact(algorithm, points, centers, dtype):
        return np.ones(len(points), bool)
    scores = assignment_scores(algorithm, points, centers)
    return margins(scores) > score_rounding(algorithm, points, centers, dtype)
