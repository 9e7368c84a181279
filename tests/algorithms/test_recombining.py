"""Recombining k-means, by hand and by properties of every problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.algorithms import Recombining, Relocating
from lloydformer.algorithms.recombining import Solution, add_to_pool, merge_centers

PAIRS = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])


def test_the_cheapest_pair_is_merged_by_mass():
    """0 and 1 cost 3/4, 1 and 3 cost 2: the first two meet at 1/4 with mass 4."""
    left = merge_centers(np.array([[0.0], [1.0], [3.0]]), np.array([3.0, 1.0, 1.0]), 2)
    assert left[:, 0].tolist() == [0.25, 3.0]


def test_a_light_center_is_merged_before_a_near_one():
    """0 and 2 cost 200, 10 and 20 with mass 1 cost 100 * 100 / 101."""
    centers = np.array([[0.0], [2.0], [10.0], [20.0]])
    left = merge_centers(centers, np.array([100.0, 100, 100, 1]), 3)
    np.testing.assert_allclose(left[:, 0], [0, 2, (1000 + 20) / 101])


def test_centers_that_both_parents_have_stay():
    one, other = np.array([[0.0], [10.0], [30.0]]), np.array([[0.0], [20.0], [30.0]])
    left = merge_centers(np.concatenate([one, other]), np.array([5.0, 5, 5, 5, 1, 5]), 3)
    np.testing.assert_allclose(left[:, 0], [0, (50 + 20) / 6, 30])


def test_clusters_without_mass_cost_nothing():
    left = merge_centers(np.array([[0.0], [5.0], [9.0]]), np.array([1.0, 0.0, 1.0]), 2)
    assert left[:, 0].tolist() == [0.0, 9.0]


def members(*objectives):
    return [Solution(np.zeros((1, 1)), np.ones(1), value) for value in objectives]


def test_a_full_pool_takes_only_what_is_better_than_its_worst_member():
    pool = members(1.0, 2.0)
    assert not add_to_pool(pool, members(3.0)[0], 2)
    assert add_to_pool(pool, members(1.5)[0], 2)
    assert [one.objective for one in pool] == [1.0, 1.5]


def test_a_solution_enters_once_and_the_better_twin_stays():
    pool = members(1.0)
    assert not add_to_pool(pool, members(1.0 - 1e-7)[0], 2)
    assert [one.objective for one in pool] == [1.0 - 1e-7]
    assert not add_to_pool(pool, members(1.0)[0], 2)
    assert [one.objective for one in pool] == [1.0 - 1e-7]


def test_two_halves_of_the_answer_make_the_whole():
    """Each parent is wrong on one side; without patience nothing else could repair them."""
    starts = np.array([[[0.0], [1.0], [15.5], [30.5]], [[5.5], [20.5], [30.0], [31.0]]])
    points = np.concatenate([PAIRS, [[30.0], [31.0]]])
    how = Recombining(n_children=1, patience=0, child_patience=0, together=1)
    found = how.run(points, starts, 50)
    assert sorted(found.centers[:, 0]) == [0.5, 10.5, 20.5, 30.5]
    assert found.objective[-1] == 2.0
    assert found.kept == (True,)


def test_without_children_it_is_the_best_of_several_relocated_starts():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(80, 2))
    starts = np.stack([points[:5], points[5:10], points[10:15]])
    found = Recombining(n_children=0, patience=2, seed=3).run(points, starts, 900)
    alone = [Relocating(patience=2, seed=3 + i).run(points, s, 300) for i, s in enumerate(starts)]
    assert found.objective[-1] == min(course.objective[-1] for course in alone)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(4, 90), st.booleans())
@settings(deadline=None, max_examples=8)
def test_the_objective_never_rises(seed, k, n_layers, weighted):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, size=(25, 2)) + rng.choice([0.0, 0.1], size=(25, 2))
    weights = rng.integers(0, 3, size=25).astype(float) if weighted else None
    starts = np.stack([points[i * k : (i + 1) * k] for i in range(3)])
    how = Recombining(n_children=6, patience=1, seed=seed % 1000)
    found = how.run(points, starts, n_layers, weights)
    assert len(found.objective) <= n_layers + 1
    assert (np.diff(found.objective) <= 0).all()
    assert found.objective[-1] == pytest.approx(found.pool[0].objective, rel=1e-9, abs=1e-12)
