"""One layer of a mixture's circuit is one iteration of EM, and the limits of the family.

The paper has no mixtures: these are statements on later recipes, with soft k-means and Lloyd's
algorithm as two of their cases.
"""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from lloydformer import algorithms
from lloydformer.algorithms.mixture import Mixture, MixtureState
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.mixture import Covariance, Family
from lloydformer.circuits.recipe import Recipe
from lloydformer.paper.verify.compare import circuit_for, deviation_from, run_circuit
from lloydformer.paper.verify.finding import Statement, equality
from lloydformer.paper.verify.problems import CONTINUOUS, Problem, draw

# Layers of a comparison, and random problems. Few: with a full covariance a layer has a network of
# 4 d - 1 layers.
LAYERS, PROBLEMS = 5, 8

COVARIANCES: tuple[Covariance, ...] = ("full", "tied", "diag", "spherical", "shared")
OTHER_FAMILIES: tuple[Family, ...] = ("bernoulli", "poisson")


def _draw_problem(rng: Generator) -> Problem:
    return draw(rng, CONTINUOUS[rng.integers(2)], n=(40, 80), d=(1, 5), k=(2, 5))


def _compare(
    recipe: Recipe, oracle: Mixture, points: np.ndarray, state: MixtureState, spread: float
) -> float:
    """Return the largest difference of the means after each layer, in spreads."""
    start = {"weights": torch.tensor(state.weights)}
    if state.covariances is not None:
        given = {"diag": np.diagonal(state.covariances, axis1=1, axis2=2)}
        given["spherical"], given["full"] = state.covariances[:, 0, 0], state.covariances
        given["tied"], given["shared"] = state.covariances[0], state.covariances[0, 0, 0]
        start["covariances"] = torch.tensor(np.array(given[str(oracle.covariance)]))
    circuit = Circuit(recipe, points.shape[1], len(state.means))
    trace = circuit(torch.tensor(points), torch.tensor(state.means), LAYERS, start=start)
    means = [iteration.state.means for iteration in oracle.run(points, state, LAYERS)]
    return float(np.abs(trace.centers[1:].numpy() - np.array(means)).max() / spread)


def _is_em(covariance: Covariance) -> Statement:
    """Return the statement that a member with these covariances is EM."""

    def deviation(rng: Generator) -> float:
        problem = _draw_problem(rng)
        points, k, d = problem.points, *problem.centers.shape
        # a variance that is added, so that small components do not end in rounding
        added = 1e-3 * problem.spread**2
        variance = points.var(axis=0).mean() + added
        state = MixtureState(
            rng.dirichlet(np.full(k, 4.0)), problem.centers, np.stack([variance * np.eye(d)] * k)
        )
        recipe = recipes.mixture(covariance, regularisation=added)
        oracle = Mixture(covariance, regularisation=added)
        return _compare(recipe, oracle, points, state, problem.spread)

    deviation.__name__ = f"is_em_{covariance}"  # which seeds its random numbers
    words = f'mixture("{covariance}") is EM, one layer an iteration'
    return equality("later result", words, PROBLEMS)(deviation)


def _is_em_of_family(family: Family) -> Statement:
    """Return the statement that the member of another family is EM."""

    def deviation(rng: Generator) -> float:
        n, k, d = int(rng.integers(40, 80)), int(rng.integers(2, 5)), int(rng.integers(2, 8))
        true = rng.uniform(0.1, 0.9, (k, d))[rng.integers(k, size=n)]
        points = rng.binomial(1, true) if family == "bernoulli" else rng.poisson(7 * true)
        means = rng.uniform(0.2, 0.8, (k, d)) * (1 if family == "bernoulli" else 7)
        state = MixtureState(rng.dirichlet(np.full(k, 4.0)), means)
        recipe = recipes.mixture(family=family)
        return _compare(recipe, Mixture(family=family), points.astype(float), state, 1.0)

    deviation.__name__ = f"is_em_{family}"
    words = f'mixture(family="{family}") is EM, one layer an iteration'
    return equality("later result", words, PROBLEMS)(deviation)


def _centers(recipe: Recipe, problem: Problem) -> Tensor:
    return run_circuit(recipe, problem, LAYERS).centers


@equality("later result", "mixture(v, weights='equal') is soft(1 / (2 v)), layer for layer", 20)
def mixture_is_soft(rng: Generator) -> float:
    """Equal weights and a fixed variance v give soft k-means with gamma = 1 / (2 v)."""
    problem = _draw_problem(rng)
    variance = float(10 ** rng.uniform(-2, 0)) * problem.spread**2
    one = _centers(recipes.mixture(variance, weights="equal"), problem)
    two = _centers(recipes.soft(0.5 / variance), problem)
    return float((one - two).abs().max() / problem.spread)


@equality("later result", "mixture(0, weights='equal') is Lloyd's, layer for layer", 20)
def mixture_is_lloyd(rng: Generator) -> float:
    """In the limit of variance 0, soft-max is limiting soft-max, and EM is Lloyd's algorithm."""
    problem = _draw_problem(rng)
    circuit = circuit_for(recipes.mixture(0.0, weights="equal"), problem)
    return deviation_from(circuit, algorithms.Lloyd(), problem)


MIXTURES: tuple[Statement, ...] = (
    *(_is_em(covariance) for covariance in COVARIANCES),
    *(_is_em_of_family(family) for family in OTHER_FAMILIES),
    mixture_is_soft,
    mixture_is_lloyd,
)
