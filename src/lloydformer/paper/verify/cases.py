"""A recipe, the algorithm that it must equal and a random problem, with suitable parameters."""

from dataclasses import dataclass

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits.activations import Ties
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.verify.pairs import (
    PAIRS,
    PairParameters,
    finds_points_by_dot_product,
    is_spherical,
)
from lloydformer.verify.problems import Family, Problem, draw, on_sphere, rounded, thinned


@dataclass(frozen=True)
class Case:
    """A recipe, the algorithm that it must equal, and a problem to run them on."""

    recipe: Recipe
    algorithm: algorithms.Algorithm
    problem: Problem
    seed: int = 0


_RESOLUTION = {np.float64: 1e-6, np.float32: 2e-2}
"""Smallest distance between points, in spreads, that dot products resolve."""


def case(
    rng: np.random.Generator,
    name: str,
    family: Family,
    ties: Ties = "first",
    dtype: type[np.floating] = np.float64,
) -> Case:
    """Draw a problem of the family that suits the recipe, and its parameters."""
    problem = draw(rng, family, d=(2, 40) if is_spherical(name) else (1, 40))
    made = PAIRS[name][0](PairParameters())
    return pair(rng, name, ties, suited(rng, made, problem, dtype))


def suited(
    rng: np.random.Generator, recipe: AnyRecipe, problem: Problem, dtype: type[np.floating]
) -> Problem:
    """Return the problem as the recipe needs it.

    Unit vectors if it has a norm, in coordinates that sum to zero for layer norm; no points that
    its dot products cannot tell apart; numbers of this dtype.
    """
    if recipe.norm is not None:
        problem = on_sphere(rng, problem)
    if finds_points_by_dot_product(recipe):
        problem = thinned(rng, problem, _RESOLUTION[dtype])
    if recipe.norm is not None and recipe.norm.zero_sum:
        problem = zero_summed(problem)
    return rounded(problem, dtype)


def pair(rng: np.random.Generator, name: str, ties: Ties, problem: Problem) -> Case:
    """Return the recipe and the algorithm with the same random parameters."""
    parameters = PairParameters(
        ties,
        inverse_temperature=float(10 ** rng.uniform(-1, 1)) / problem.spread**2,
        keep=float(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99, 1.0])),
        separation=float(rng.choice([0.0, 0.5, 100.0])),
        seed=int(rng.integers(2**32)),
        activation="softmax" if rng.random() < 0.3 else "sparsemax",
    )
    recipe, algorithm = PAIRS[name]
    return Case(recipe(parameters), algorithm(parameters), problem, parameters.seed)


def zero_summed(problem: Problem) -> Problem:
    """Return the same problem, mapped isometrically to coordinates that sum to zero."""

    def lift(rows: np.ndarray) -> np.ndarray:
        return zero_sum(torch.tensor(rows)).numpy()

    return Problem(lift(problem.points), lift(problem.centers), problem.family)
