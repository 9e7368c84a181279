"""Soft k-means as a plan, against the formula; weights too small for a float."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from lloydformer.plans.soft import SoftPlan


def naive(points, centers, gamma, weights):
    """Shares, means weighted by them, and the free energy, as the docstring writes them."""
    squares = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
    shares = np.exp(-gamma * squares)
    shares = weights[:, None] * shares / shares.sum(axis=1, keepdims=True)
    energy = -(weights * logsumexp(-gamma * squares, axis=1)).sum() / gamma
    return shares.T @ points / shares.sum(axis=0)[:, None], energy


@given(st.integers(0, 10**6), st.floats(0.01, 5), st.integers(1, 9))
def test_it_is_the_formula_for_any_blocks(small, seed, gamma, leaf):
    rng = np.random.default_rng(seed)
    points, centers = rng.normal(size=(9, 2)), rng.normal(size=(3, 2))
    weights = rng.uniform(0.1, 2, size=9)
    moved, step = small(points, weights, leaf).step(SoftPlan(gamma), centers)
    expected, energy = naive(points, centers, gamma, weights)
    np.testing.assert_allclose(moved, expected, atol=1e-9)
    assert step.objective == pytest.approx(energy, abs=1e-9)


def test_by_hand(small):
    """exp(-gamma d^2) with gamma = log 2: distances 0 and 1 weigh 1 and 1/2."""
    moved, _ = small([[0.0], [1.0]]).step(SoftPlan(float(np.log(2))), [[0.0], [1.0]])
    np.testing.assert_allclose(moved, [[1 / 3], [2 / 3]])


def test_a_center_whose_weights_are_too_small_for_a_float_moves_all_the_same(small):
    """exp(-1e6) is zero in double precision, but the point at 2 weighs exp(1997) times more."""
    moved, _ = small([[0.0], [1.0], [2.0]]).step(SoftPlan(1.0), [[1.0], [1000.0]])
    np.testing.assert_allclose(moved, [[1.0], [2.0]])


def test_where_even_logarithms_overflow_all_points_weigh_the_same(small):
    moved, _ = small([[0.0], [1.0], [5.0]], [1.0, 1.0, 2.0]).step(SoftPlan(1e300), [[1.0], [1e6]])
    np.testing.assert_allclose(moved[1], [11 / 4])


def test_a_center_with_small_weights_moves_to_the_points_that_are_least_far(small):
    """Shares of exp(-440) and exp(-400) are tiny, but their ratio is not."""
    moved, _ = small([[0.0], [1.0]]).step(SoftPlan(1.0), [[0.0], [21.0]])
    ratio = np.exp(-441 + 0) / (np.exp(-400 + 1) / (1 + np.exp(-399)))
    assert moved[1].item() == pytest.approx(1 / (1 + ratio), rel=1e-9)


def test_weights_of_zero_are_points_that_are_not_there(small, rng):
    points, centers = rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
    with_zeros, _ = small(points, [1, 1, 0, 0, 1, 0]).step(SoftPlan(), centers)
    without, _ = small(points[[0, 1, 4]]).step(SoftPlan(), centers)
    np.testing.assert_allclose(with_zeros, without, atol=1e-12)
