"""Assignments and objectives that the text defines, and what it says of them."""

from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy.special import softmax

from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.verify.finding import Finding, Statement, equality
from lloydformer.verify.problems import CONTINUOUS, Problem, draw

N_PROBLEMS = 40


def _run(recipe: Recipe, problem: Problem, n_layers: int, seed: int | None = None) -> Trace:
    circuit = Circuit(recipe, problem.points.shape[1], len(problem.centers))
    points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
    return circuit(points, centers, n_layers, seed=seed)


def assignments(rng: np.random.Generator) -> Finding:
    """Y^gamma(C, X) = sigma_gamma(DP(C, X)) is what encoder cross-attention writes."""

    def deviation() -> float:
        problem = draw(rng, CONTINUOUS[rng.integers(2)])
        gamma = float(10 ** rng.uniform(-1, 1)) / problem.spread**2
        scores = -squared_distances(problem.points, problem.centers)  # (n, k), DP transposed
        limit = np.eye(scores.shape[1])[scores.argmax(axis=1)]  # gamma = infinity, no ties
        wanted = {recipes.soft(gamma): softmax(gamma * scores, axis=1),
                  recipes.lloyd("average"): limit}  # fmt: skip
        found = {recipe: _run(recipe, problem, 1).assignments[0].numpy() for recipe in wanted}
        return max(float(np.abs(found[recipe] - wanted[recipe]).max()) for recipe in wanted)

    return equality("def Y", "encoder cross-attention writes Y^gamma(C, X), also for gamma = inf",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def smoothed(squares: Float[ndarray, "n k"], loss_temperature: float) -> float:
    """Return the smoothed objective of these squared distances (eq:sm-kmeans)."""
    return float((softmax(-squares / loss_temperature, axis=1) * squares).sum())


def smoothed_bound(rng: np.random.Generator) -> Finding:
    """L <= L~_lambda <= L + n lambda log k, so L~ tends to L as lambda tends to 0.

    The entropy of the weights p is at most log k, and p minimises <p, d> - lambda H(p), which is
    at most min d. So <p, d> is at most min d + lambda log k.
    """

    def deviation() -> float:
        problem = draw(rng, "uniform")
        squares = squared_distances(problem.points, problem.centers)
        loss_temperature = float(10 ** rng.uniform(-12, 1))
        exact, smooth = squares.min(axis=1).sum(), smoothed(squares, loss_temperature)
        upper = exact + squares.shape[0] * loss_temperature * np.log(squares.shape[1])
        return float(max(0.0, exact - smooth, smooth - upper) / exact)

    return equality("eq:sm-kmeans", "the smoothed objective is above the objective L, and at most "
                    "L + n lambda log k",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def medoids_are_points(rng: np.random.Generator) -> Finding:
    """Centers of medoids() are points, so their objective is one that eq:kmeds minimises over."""

    def deviation() -> float:
        problem = draw(rng, CONTINUOUS[rng.integers(2)], n=(6, 14), d=(1, 5), k=(2, 3))
        trace = _run(recipes.medoids(0.5), problem, 10, seed=int(rng.integers(2**32)))
        away = [squared_distances(c, problem.points).min(axis=1).max()
                for c in trace.centers.numpy()]  # fmt: skip
        below = _least(problem) - trace.objective.min().item()
        return max(float(np.sqrt(max(away))), below / problem.spread) / problem.spread

    return equality("eq:kmeds", "centers of medoids() are points; none is below the best of all "
                    "subsets",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def _least(problem: Problem) -> float:
    """Return the minimum of eq:kmeds, by trying every set of k points."""
    squares = squared_distances(problem.points, problem.points)
    sets = combinations(range(len(squares)), len(problem.centers))
    return min(float(squares[:, list(chosen)].min(axis=1).sum()) for chosen in sets)


DEFINITIONS: tuple[Statement, ...] = (assignments, smoothed_bound, medoids_are_points)
