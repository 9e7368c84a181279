"""The problems of `lloydformer check`: those of `problems` that suit a recipe."""

from dataclasses import replace
from zlib import crc32

import numpy as np

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.verify.cases import suited
from lloydformer.verify.pairs import finds_points_by_dot_product
from lloydformer.verify.problems import (
    FAMILIES,
    HARD,
    Family,
    Problem,
    between,
    coincident,
    draw,
    rounded,
    tied,
    with_empty_cluster,
)

ON_SPHERE: tuple[Family, ...] = (
    "clustered", "uniform", "integer", "between", "duplicates", "coincident",
)  # fmt: skip
N_POINTS, N_CLUSTERS = (5, 100), (1, 8)
"""Sizes of the problems, both ends included."""
TWO_CENTERS = ("ties", "coincident", "empty", "axes")
"""Families that make no sense with one center."""
MOST_FEATURES = {"integer": 4, "ties": 4, "axes": 6}
"""The largest number of features, 16 in other families."""


def families_for(recipe: AnyRecipe) -> tuple[Family, ...]:
    """Return the families that suit the recipe.

    Unit vectors have no outliers, units or shifts. Dot products cannot tell near points apart.
    """
    if recipe.norm is not None:
        return ON_SPHERE if recipe.norm.zero_sum else (*ON_SPHERE, "axes")
    known = (*FAMILIES, *HARD)
    return tuple(f for f in known if f != "near" or not finds_points_by_dot_product(recipe))


def drawn_problem(
    recipe: AnyRecipe,
    family: Family,
    seed: int = 0,
    number: int = 0,
    dtype: type[np.floating] = np.float64,
) -> Problem:
    """Return the problem of this family and number, as the recipe needs it."""
    rng = np.random.default_rng([seed, number, crc32(family.encode())])
    n_features = (1 if recipe.norm is None else 2, MOST_FEATURES.get(family, 16))
    n_clusters = (2, N_CLUSTERS[1]) if family in TWO_CENTERS else N_CLUSTERS
    problem = draw(rng, family, N_POINTS, n_features, n_clusters)
    problem = suited(rng, recipe, problem, dtype)
    return rounded(_with_hard_centers(rng, recipe, problem), dtype)


def _with_hard_centers(rng: np.random.Generator, recipe: AnyRecipe, problem: Problem) -> Problem:
    """Return the problem with the centers of its family, unit vectors if the recipe has a norm."""
    match problem.family:
        case "between":
            moved = between(rng, problem)
            lengths = np.linalg.norm(moved.centers, axis=1, keepdims=True)
            return moved if recipe.norm is None else replace(moved, centers=moved.centers / lengths)
        case "ties":
            return tied(problem)
        case "coincident":
            return coincident(problem)
        case "empty":
            return with_empty_cluster(rng, problem)
    return problem
