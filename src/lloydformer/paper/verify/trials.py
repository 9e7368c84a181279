"""Trials: a recipe, an algorithm and a problem as the recipe needs it.

`draw_trial` pairs a recipe of the package with its algorithm; `draw_for_recipe` draws the problems
of `lloydformer check`.
"""

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits.activations import Ties
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.paper.verify import problems
from lloydformer.paper.verify.known import (
    PairParameters,
    finds_points_by_dot_product,
    is_spherical,
    make_algorithm,
    make_recipe,
)
from lloydformer.paper.verify.problems import FAMILIES, HARD, Family, Problem

# Layers that are compared by default, as many as the paper's experiments have.
N_LAYERS = 10
# Smallest distance between points, in spreads, that dot products resolve: squared it is 4,500 times
# the rounding unit of float64, and 3,400 times that of float32.
RESOLUTION = {torch.float64: 1e-6, torch.float32: 2e-2}

# Families of `lloydformer check` for unit vectors, which have no outliers, units or shifts.
ON_SPHERE: tuple[Family, ...] = (
    *("clustered", "uniform", "integer"),
    *("between", "duplicates", "coincident"),
)
# Sizes of the problems of `lloydformer check`, both ends included; few features where points
# should be equal or tied often.
N_POINTS, N_CLUSTERS = (5, 100), (1, 8)
MOST_FEATURES = {"integer": 4, "ties": 4, "axes": 6}
# Families that make no sense with one center.
TWO_CENTERS = ("ties", "coincident", "empty", "axes")


@dataclass(frozen=True)
class Trial:
    """A recipe, the algorithm that it must equal, and a problem to run them on.

    Attributes
    ----------
    recipe, algorithm, problem, n_layers, dtype
        What is compared.
    seed : int
        Seed of the noise, for recipes that draw.
    drawn : tuple of int
        Seed and number of the problem in its family.
    """

    recipe: AnyRecipe
    algorithm: algorithms.Algorithm
    problem: Problem
    n_layers: int = N_LAYERS
    seed: int = 0
    dtype: torch.dtype = torch.float64
    drawn: tuple[int, int] = (0, 0)


def draw_trial(
    rng: np.random.Generator,
    name: str,
    family: Family,
    ties: Ties = "first",
    dtype: torch.dtype = torch.float64,
) -> Trial:
    """Draw a problem of the family that suits the recipe of this name, and its parameters."""
    problem = problems.draw(rng, family, d=(2, 40) if is_spherical(name) else (1, 40))
    problem = adapt(rng, make_recipe(name), problem, dtype)
    return replace(pair(rng, name, ties, problem), dtype=dtype)


def pair(rng: np.random.Generator, name: str, ties: Ties, problem: Problem) -> Trial:
    """Return the recipe and the algorithm with the same random parameters."""
    parameters = PairParameters(
        ties,
        # relative to the spread: otherwise assignments are hard or uniform on most problems
        inverse_temperature=float(10 ** rng.uniform(-1, 1)) / problem.spread**2,
        keep=float(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99, 1.0])),
        separation=float(rng.choice([0.0, 0.5, 100.0])),
        seed=int(rng.integers(2**32)),
        activation="softmax" if rng.random() < 0.3 else "sparsemax",
    )
    recipe, algorithm = make_recipe(name, parameters), make_algorithm(name, parameters)
    return Trial(recipe, algorithm, problem, seed=parameters.seed)


def adapt(
    rng: np.random.Generator, recipe: AnyRecipe, problem: Problem, dtype: torch.dtype
) -> Problem:
    """Return the problem as the recipe needs it.

    Unit vectors if it has a norm, in coordinates that sum to zero for layer norm; no points that
    its dot products cannot tell apart; numbers of this dtype.
    """
    if recipe.norm is not None:
        problem = problems.on_sphere(rng, problem)
    if finds_points_by_dot_product(recipe):
        problem = problems.without_near_points(rng, problem, RESOLUTION[dtype])
    if recipe.norm is not None and recipe.norm.zero_sum:
        problem = lift_to_zero_sum(problem)
    return problems.round_to_dtype(problem, dtype)


def lift_to_zero_sum(problem: Problem) -> Problem:
    """Return the problem, mapped isometrically to coordinates that sum to zero."""
    points, centers = (
        zero_sum(torch.tensor(rows)).numpy() for rows in (problem.points, problem.centers)
    )
    return replace(problem, points=points, centers=centers)


def families_for(recipe: AnyRecipe) -> tuple[Family, ...]:
    """Return the families that suit the recipe."""
    if recipe.norm is not None:
        return ON_SPHERE if recipe.norm.zero_sum else (*ON_SPHERE, "axes")
    known = (*FAMILIES, *HARD)
    return tuple(f for f in known if f != "near" or not finds_points_by_dot_product(recipe))


def draw_for_recipe(
    recipe: AnyRecipe,
    family: Family,
    seed: int = 0,
    number: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Problem:
    """Return the problem of this family and number, as the recipe needs it."""
    # independent of the other families, so that `families` does not change the problems
    rng = np.random.default_rng([seed, number, crc32(family.encode())])
    n_features = (1 if recipe.norm is None else 2, MOST_FEATURES.get(family, 16))
    n_clusters = (2, N_CLUSTERS[1]) if family in TWO_CENTERS else N_CLUSTERS
    problem = adapt(
        rng, recipe, problems.draw(rng, family, N_POINTS, n_features, n_clusters), dtype
    )
    match family:
        case "between":
            problem = problems.with_centers_between(rng, problem)
            if recipe.norm is not None:
                lengths = np.linalg.norm(problem.centers, axis=1, keepdims=True)
                problem = replace(problem, centers=problem.centers / lengths)
        case "ties":
            problem = problems.with_ties(problem)
        case "coincident":
            problem = problems.with_equal_centers(problem)
        case "empty":
            problem = problems.with_empty_cluster(rng, problem)
    return problems.round_to_dtype(problem, dtype)
