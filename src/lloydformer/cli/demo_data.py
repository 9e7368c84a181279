"""What the demo clusters: points in the plane with a few outliers, and handwritten digits."""

import numpy as np
from numpy import ndarray
from sklearn.datasets import load_digits

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.verify.cases import Case
from lloydformer.verify.problems import Problem, with_centers

PLANE, DIGITS = "plane", "digits"

_MIDDLES = np.array([[-9.0, 4.0], [-1.0, 10.0], [9.0, 6.0], [7.0, -7.0], [-5.0, -8.0]])
_OUTLIERS = np.array([[-19.0, 13.0], [17.0, 16.0], [19.0, -14.0], [-16.0, -15.0], [0.0, -19.0]])


def plane(seed: int, n_points: int = 115) -> Problem:
    """Five round clusters about the origin and five outliers; all centers start in two of them."""
    rng = np.random.default_rng(seed)
    n_inside = n_points - len(_OUTLIERS)
    middles = _MIDDLES[np.arange(n_inside) % len(_MIDDLES)]
    points = np.concatenate([middles + 2.2 * rng.normal(size=middles.shape), _OUTLIERS])
    crowded = np.flatnonzero(np.arange(n_inside) % len(_MIDDLES) < 2)
    return Problem(points, points[rng.choice(crowded, size=5, replace=False)], PLANE)


def digits(seed: int, n_points: int = 200) -> Problem:
    """The first images of scikit-learn's digits, 8 by 8 with values from 0 to 1; k = 10."""
    points = load_digits().data[:n_points] / 16
    return with_centers(np.random.default_rng(seed), points, 10, DIGITS)


def on_circle(problem: Problem) -> Problem:
    """The same rows as directions: from the mean for the plane, as they are for images."""
    origin = problem.points.mean(axis=0) if problem.family == PLANE else 0.0
    return Problem(_unit(problem.points - origin), _unit(problem.centers - origin), problem.family)


def cases(problem: Problem, seed: int) -> list[Case]:
    """Every row of the table on this problem, beside the algorithm that it must equal.

    Temperatures follow the data: `width` is a typical squared distance within a cluster.
    """
    width = 10.0 if problem.family == PLANE else 2.0
    tuned = {
        "soft": recipes.soft(1 / width),
        "trimmed": recipes.trimmed(keep=0.9),
        "robust": recipes.robust(0.3 / width),
    }
    rows = [tuned.get(recipe.name, recipe) for recipe in recipes.table()]
    plain = _algorithms(width, seed)
    return [Case(r, plain[r.name], on_circle(problem) if r.norm else problem, seed) for r in rows]


def _algorithms(width: float, seed: int) -> dict[str, algorithms.Algorithm]:
    """The plain algorithms by recipe, with the same parameters."""
    return {
        "lloyd": algorithms.Lloyd(),
        "lloyd_dot": algorithms.Lloyd(),
        "spherical": algorithms.Spherical(),
        "soft": algorithms.Soft(1 / width),
        "trimmed": algorithms.Trimmed("first", 0.9),
        "robust": algorithms.Robust("first", 0.3 / width),
        "medoids": algorithms.Medoids("first", 100.0, seed),
    }


def _unit(rows: ndarray) -> ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
