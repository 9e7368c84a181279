"""The data of the demo: points in the plane with a few outliers, and handwritten digits."""

import numpy as np
from numpy import ndarray
from sklearn.datasets import load_digits

from lloydformer.circuits import recipes
from lloydformer.verify.cases import Case
from lloydformer.verify.known import paired_algorithm
from lloydformer.verify.problems import Problem, with_centers

PLANE, DIGITS = "plane", "digits"

_MIDDLES = np.array([[-2.7, 1.3], [0.0, 3.0], [2.7, 1.3], [1.8, -2.0], [-1.8, -2.0]])
_OUTLIERS = np.array([[-5.0, 3.7], [4.3, 4.7], [5.3, -2.7], [-4.7, -4.0], [0.3, -5.0]])


def plane(seed: int, n_points: int = 120) -> Problem:
    """Five round clusters around the origin, and five outliers; k = 5."""
    rng = np.random.default_rng(seed)
    n_inside = n_points - len(_OUTLIERS)
    middles = _MIDDLES[np.arange(n_inside) % len(_MIDDLES)]
    points = np.concatenate([middles + 0.75 * rng.normal(size=middles.shape), _OUTLIERS])
    return Problem(points, points[rng.choice(n_inside, size=5, replace=False)], PLANE)


def digits(seed: int, n_points: int = 500) -> Problem:
    """The first images of scikit-learn's digits, 8 by 8 with values from 0 to 1; k = 10."""
    points = load_digits().data[:n_points] / 16
    return with_centers(np.random.default_rng(seed), points, 10, DIGITS)


def directions(problem: Problem) -> Problem:
    """The rows as unit vectors; points in the plane are centered first, images are not."""
    origin = problem.points.mean(axis=0) if problem.family == PLANE else 0.0
    points, centers = _unit(problem.points - origin), _unit(problem.centers - origin)
    return Problem(points, centers, problem.family)


def cases(problem: Problem, seed: int) -> list[Case]:
    """Every row of the table on this problem, with the algorithm that it must equal."""
    return [
        Case(r, paired_algorithm(r, seed), directions(problem) if r.norm else problem, seed)
        for r in recipes.table()
    ]


def _unit(rows: ndarray) -> ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
