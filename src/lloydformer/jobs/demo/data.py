"""The data of the demo: points in the plane with a few outliers, and handwritten digits."""

import numpy as np
from numpy import ndarray
from sklearn.datasets import load_digits

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Gumbel, NormMax, Softmax, Sparsemax
from lloydformer.circuits.recipe import Recipe
from lloydformer.verify.cases import Case
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
        Case(r, _algorithm(r, seed), directions(problem) if r.norm else problem, seed)
        for r in recipes.table()
    ]


def _algorithm(recipe: Recipe, seed: int) -> algorithms.Algorithm:
    """The plain algorithm of a recipe, with the parameters of the recipe's parts."""
    match recipe.encoder_cross.activation, recipe.decoder_cross.activation:
        case Softmax(inverse_temperature), _:
            return algorithms.Soft(inverse_temperature)
        case _, NormMax(keep=float(keep)):
            return algorithms.Trimmed("first", keep)
        case _, Sparsemax(inverse_temperature):
            return algorithms.Robust("first", inverse_temperature)
        case _, Gumbel():
            return algorithms.Medoids("first", recipe.decoder_cross.separation or 0.0, seed)
    return algorithms.Spherical() if recipe.norm else algorithms.Lloyd()


def _unit(rows: ndarray) -> ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
