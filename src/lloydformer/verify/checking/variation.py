"""How much the result of an algorithm changes if its input changes by rounding errors.

Two correct computations may differ by that much: where two points are equally far from a center and
one of them is left out, rounding decides which.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms import Algorithm
from lloydformer.verify.problems import Problem

ERRORS = 64
"""Size of the errors, in units of the last place."""
N_DRAWS = 4
FACTOR = 100.0
"""Results may differ by this many times what the draws show."""


def share_variation(
    algorithm: Algorithm, problem: Problem, centers: ndarray, dtype: torch.dtype
) -> Float[ndarray, " n"]:
    """Return how much the shares of each point may differ because of rounding."""
    expected = algorithm.assign(problem.points, centers)
    changes = [
        np.abs(algorithm.assign(points, moved) - expected).max(axis=1)
        for points, moved in _perturbed(problem, centers, dtype)
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
        for points, moved in _perturbed(problem, centers, dtype)
    ]
    return FACTOR * float(np.max(changes)) / problem.spread


def _perturbed(
    problem: Problem, centers: ndarray, dtype: torch.dtype
) -> Iterator[tuple[ndarray, ndarray]]:
    """Yield points and centers with random errors of a few units of the last place."""
    rng = np.random.default_rng(0)
    size = ERRORS * torch.finfo(dtype).eps * (problem.spread + np.abs(problem.points).max())
    for _ in range(N_DRAWS):
        points, moved = (
            rows + size * rng.normal(size=rows.shape) for rows in (problem.points, centers)
        )
        yield points, moved
