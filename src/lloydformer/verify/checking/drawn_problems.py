"""The problems of `lloydformer check`: those of `problems` that suit a recipe."""

import numpy as np

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.verify.cases import suited
from lloydformer.verify.pairs import finds_points_by_dot_product
from lloydformer.verify.problems import (
    FAMILIES,
    HARD,
    Family,
    Problem,
    coincident,
    draw,
    rounded,
    tied,
    with_empty_cluster,
)

EVERY_FAMILY: tuple[Family, ...] = (*FAMILIES, *HARD, "axes")
ON_SPHERE: tuple[Family, ...] = ("clustered", "uniform", "integer", "duplicates", "coincident")
N_POINTS, N_CLUSTERS = (5, 100), (1, 8)
"""Sizes of the problems, both ends included. Problems with ties have two centers or more."""
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
    rng = np.random.default_rng([seed, number, EVERY_FAMILY.index(family)])
    n_features = (1 if recipe.norm is None else 2, MOST_FEATURES.get(family, 16))
    n_clusters = (2, N_CLUSTERS[1]) if family in ("ties", "axes") else N_CLUSTERS
    problem = draw(rng, family, N_POINTS, n_features, n_clusters)
    problem = suited(rng, recipe, problem, dtype)
    if family == "ties":
        problem = tied(problem)
    if family == "coincident":
        problem = coincident(problem)
    if family == "empty":
        problem = with_empty_cluster(rng, problem)
    return rounded(problem, dtype)
