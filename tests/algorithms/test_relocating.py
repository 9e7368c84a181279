"""Relocating k-means, by hand and by properties of every problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from lloydformer.algorithms import Relocating
from lloydformer.algorithms.relocating import WeightedPoints

PAIRS = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])


def problem(points, weights=None):
    return WeightedPoints(points, np.ones(len(points)) if weights is None else weights)


def test_a_surplus_center_moves_where_one_is_missing():
    """0 | 1 | the rest is a local minimum; the best is one center for each pair."""
    start = np.array([[0.0], [1.0], [15.5]])
    course = Relocating(seed=3).run(PAIRS, start, 20)
    assert course.objective[0] == pytest.approx(2 * (5.5**2 + 4.5**2))
    assert sorted(course.centers[-1][:, 0]) == [0.5, 10.5, 20.5]
    assert course.objective[-1] == 1.5


def test_the_center_that_costs_least_is_removed():
    """Of 0, 1, 10.5 and 20.5, one of the first two; its point goes to the other."""
    left = problem(PAIRS).prune(np.array([[0.0], [1.0], [10.5], [20.5]]))
    assert left[:, 0].tolist() == [0.5, 10.5, 20.5]


def test_a_center_without_points_is_removed_first():
    left = problem(PAIRS).prune(np.array([[0.5], [10.5], [100.0], [20.5]]))
    assert left[:, 0].tolist() == [0.5, 10.5, 20.5]


def test_a_cluster_splits_between_a_point_and_its_center():
    """10 and 11 | 20 and 21 around 15.5: every drawn point gives these halves."""
    gain, near, rest = Relocating().halve(problem(PAIRS), np.array([[0.5], [15.5]]), 1, 0)
    assert sorted([near.item(), rest.item()]) == [10.5, 20.5]
    assert gain == 2 * 2 / 4 * 10**2


def test_a_cluster_of_equal_points_does_not_split():
    points = np.array([[0.0], [0.0], [5.0], [5.0]])
    centers = np.array([[0.0], [5.0]])
    assert Relocating().grow(problem(points), centers, 0, 2).tolist() == [[0.0], [5.0]]
    course = Relocating().run(points, centers, 30)
    assert course.objective.tolist() == [0.0] * len(course.objective)


def test_without_patience_it_is_lloyds_algorithm():
    points = np.random.default_rng(1).normal(size=(100, 2))
    theirs = KMeans(5, init=points[:5], n_init=1, tol=0).fit(points)
    ours = Relocating(patience=0).run(points, points[:5], 300)
    np.testing.assert_allclose(ours.centers[-1], theirs.cluster_centers_, atol=1e-12)
    assert ours.kept == ()


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(0, 40),
    st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_the_objective_never_rises(seed, k, d, n_layers, weighted):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, size=(30, d)) + rng.choice([0.0, 0.1], size=(30, d))
    weights = rng.integers(0, 3, size=30).astype(float) if weighted else None
    rest = (None, 0, 2)[seed % 3]
    how = Relocating(seed=seed % 1000, rest=rest)
    course = how.run(points, points[:k], n_layers, weights)
    assert len(course.objective) <= n_layers + 1
    assert (np.diff(course.objective) <= 1e-9 * course.objective[0] + 1e-12).all()


def test_number_of_layers_of_a_relocation():
    """Two layers of Lloyd's algorithm, and eight in which the centers do not change."""
    points = np.random.default_rng(0).normal(size=(200, 3))
    course = Relocating(rest=2).run(points, points[:8], 10)
    assert len(course.objective) == 11
    assert (course.centers[2:10] == course.centers[2]).all()
    assert len(course.kept) == 1
