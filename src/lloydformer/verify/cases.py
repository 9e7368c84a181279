"""Which plain algorithm each recipe must equal, with parameters that suit a problem."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Ties
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.recipe import Recipe
from lloydformer.verify.problems import Family, Problem, draw, on_sphere, rounded, thinned


@dataclass(frozen=True)
class Case:
    """A recipe, the algorithm that it must equal, and a problem to try them on."""

    recipe: Recipe
    algorithm: algorithms.Algorithm
    problem: Problem
    seed: int = 0


NAMES = (
    "lloyd", "lloyd_dot", "spherical", "spherical_layer", "soft", "trimmed", "robust", "medoids",
    "soft_dot", "robust_lifted", "lloyd_binary",
)  # fmt: skip
"""The ten recipes, spherical with either norm."""

FIRST_ONLY = ("soft", "soft_dot", "lloyd_binary")
"""Recipes to which averaged ties do not apply."""

_BY_DOT_PRODUCT = ("lloyd_dot", "spherical", "spherical_layer", "soft_dot", "robust_lifted")
_RESOLUTION = {np.float64: 1e-6, np.float32: 2e-2}
"""Separations, in spreads, that dot products still resolve."""


def case(
    rng: np.random.Generator,
    name: str,
    family: Family,
    ties: Ties = "first",
    dtype: type[np.floating] = np.float64,
) -> Case:
    """A random problem of the family for the recipe, and both ways to solve it."""
    problem = draw(rng, family, d=(2, 40) if "spherical" in name else (1, 40))
    if "spherical" in name:
        problem = on_sphere(rng, problem)
    if name in _BY_DOT_PRODUCT:
        problem = thinned(rng, problem, _RESOLUTION[dtype])
    if name == "spherical_layer":
        problem = zero_summed(problem)
    problem = rounded(problem, dtype)
    return pair(rng, name, ties, problem)


def pair(rng: np.random.Generator, name: str, ties: Ties, problem: Problem) -> Case:
    """The recipe and the algorithm with the same random parameters."""
    gamma = float(10 ** rng.uniform(-1, 1)) / problem.spread**2
    keep = float(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99, 1.0]))
    separation = float(rng.choice([0.0, 0.5, 100.0]))
    seed = int(rng.integers(2**32))
    weighting: recipes.Weighting = "softmax" if rng.random() < 0.3 else "sparsemax"
    pairs: dict[str, Callable[[], tuple[Recipe, algorithms.Algorithm]]] = {
        "lloyd": lambda: (recipes.lloyd(ties), algorithms.Lloyd(ties)),
        "lloyd_dot": lambda: (recipes.lloyd_dot(ties), algorithms.Lloyd(ties)),
        "lloyd_binary": lambda: (recipes.lloyd_binary(), algorithms.LloydBinary()),
        "spherical": lambda: (recipes.spherical("rms", ties), algorithms.Spherical(ties)),
        "spherical_layer": lambda: (recipes.spherical("layer", ties), algorithms.Spherical(ties)),
        "soft": lambda: (recipes.soft(gamma), algorithms.Soft(gamma)),
        "soft_dot": lambda: (recipes.soft_dot(gamma), algorithms.Soft(gamma)),
        "trimmed": lambda: (recipes.trimmed(keep, ties=ties), algorithms.Trimmed(ties, keep)),
        "robust": lambda: (
            recipes.robust(gamma, weighting, ties=ties),
            algorithms.Robust(ties, gamma, weighting),
        ),
        "robust_lifted": lambda: (
            recipes.robust_lifted(gamma, weighting, ties=ties),
            algorithms.Robust(ties, gamma, weighting, lifted=True),
        ),
        "medoids": lambda: (
            recipes.medoids(separation, ties),
            algorithms.Medoids(ties, separation, seed),
        ),
    }
    return Case(*pairs[name](), problem, seed)


def zero_summed(problem: Problem) -> Problem:
    """The same problem, isometrically, with coordinates that sum to zero."""

    def lift(rows: np.ndarray) -> np.ndarray:
        return zero_sum(torch.tensor(rows)).numpy()

    return Problem(lift(problem.points), lift(problem.centers), problem.family)
