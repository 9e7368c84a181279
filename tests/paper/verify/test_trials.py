"""Each family of problems has what it is named after, and suits the recipe."""

import numpy as np
import pytest
import torch

from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits import recipes
from lloydformer.paper.verify.problems import FAMILIES, HARD
from lloydformer.paper.verify.rounding import margins
from lloydformer.paper.verify.trials import draw_for_recipe, families_for

LLOYD, NUMBERS = recipes.lloyd(), range(6)
SPHERICAL = (recipes.spherical("rms"), recipes.spherical("layer"))


def drawn(family, recipe=LLOYD):
    return [draw_for_recipe(recipe, family, seed=1, number=i) for i in NUMBERS]


def n_equal(rows):
    return len(rows) - len(np.unique(rows, axis=0))


def nearest(problem):
    return squared_distances(problem.points, problem.centers).argmin(axis=1)


def has_ties(problem):
    return (margins(-squared_distances(problem.points, problem.centers)) == 0).any()


def is_among(rows, others):
    return (rows[:, None] == others).all(axis=2).any(axis=1)


HAS = {
    "between": lambda p: not is_among(p.centers, p.points).all(),
    "duplicates": lambda p: n_equal(p.points) > 0,
    "ties": has_ties,
    "coincident": lambda p: n_equal(p.centers) > 0,
    "outlier": lambda p: (
        np.sort(np.linalg.norm(p.points - np.median(p.points, axis=0), axis=1))[-2]
        < 0.01 * p.spread
    ),
    "empty": lambda p: len(set(nearest(p))) < len(p.centers),
    "near": lambda p: (
        0
        < np.sort(squared_distances(p.points, p.points) + np.eye(len(p.points)))[0, 0]
        < (1e-7 * p.spread) ** 2
    ),
    "shifted": lambda p: np.abs(p.points).min() > 1e5,
    "integer": lambda p: (p.points == p.points.round()).all(),
}


@pytest.mark.parametrize("family", HAS)
def test_a_family_has_what_it_is_named_after(family):
    assert all(HAS[family](problem) for problem in drawn(family))


def test_other_units():
    spreads = [problem.spread for problem in drawn("scaled")]
    assert max(spreads) > 100 * min(spreads)


def test_one_center_is_among_the_problems():
    counts = {len(draw_for_recipe(LLOYD, "clustered", number=i).centers) for i in range(20)}
    assert {1, 2} <= counts


@pytest.mark.parametrize("recipe", SPHERICAL, ids=("rms", "layer"))
def test_unit_vectors_for_recipes_with_a_norm(recipe):
    assert not {"outlier", "scaled", "shifted"} & set(families_for(recipe))
    for family in families_for(recipe):
        for problem in drawn(family, recipe):
            for rows in (problem.points, problem.centers):
                np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
                if recipe.norm.zero_sum:
                    np.testing.assert_allclose(rows.sum(axis=1), 0.0, atol=1e-12)


def test_axes_have_ties():
    assert all(has_ties(problem) for problem in drawn("axes", SPHERICAL[0]))


def test_points_that_dot_products_cannot_tell_apart_are_left_out():
    assert set(families_for(LLOYD)) - set(families_for(recipes.lloyd_dot())) == {"near"}
    assert families_for(LLOYD) == (*FAMILIES, *HARD)


def test_numbers_are_those_of_the_dtype():
    problem = draw_for_recipe(LLOYD, "clustered", dtype=torch.float32)
    np.testing.assert_array_equal(problem.points, problem.points.astype(np.float32))
