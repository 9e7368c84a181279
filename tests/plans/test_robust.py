"""Robust k-means as a plan: its threshold against entmax and bisection, its centers by hand."""

import entmax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.algorithms.robust import softmax, sparsemax
from lloydformer.plans.robust import RobustPlan, find_thresholds

LINE = [[0.0], [1.0], [2.0], [10.0]]
SQUARES = st.lists(st.floats(0, 100) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=9)


def thresholds(small, squares, weights=None, gamma=1.0):
    """The threshold of one cluster whose points have these squared distances."""
    few = small(np.zeros((len(squares), 1)), weights)
    few.session.state.column("labels").zero_()
    few.session.state.column("distances").copy_(torch.tensor(squares, dtype=torch.float64))
    return find_thresholds(few.session, gamma, 1).item()


@given(SQUARES, st.sampled_from([0.01, 1.0, 10.0]))
def test_the_threshold_is_sparsemaxs(small, squares, gamma):
    z = -gamma * np.array(squares)
    weights = np.maximum(z - thresholds(small, squares, gamma=gamma), 0)
    library = entmax.sparsemax(torch.tensor(z), dim=-1).numpy()
    np.testing.assert_allclose(weights, library, atol=1e-9)
    np.testing.assert_allclose(weights, sparsemax(z), atol=1e-9)


@given(SQUARES, st.data())
def test_a_weight_is_so_many_points(small, squares, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(squares), max_size=len(squares)))
    counts[0] += 1
    repeated = np.repeat(squares, counts)
    expected = thresholds(small, repeated.tolist())
    assert thresholds(small, squares, counts) == pytest.approx(expected, abs=1e-9)


def test_by_hand(small):
    """Scores 0, -1/4, -1, -25: sparsemax gives 5/8, 3/8 and nothing, so the center is 3/8."""
    moved, _ = small(LINE).step(RobustPlan(0.25), [[0.0]])
    assert moved.item() == pytest.approx(0.375)


@pytest.mark.parametrize("m", [None, 1, 2, 3])
def test_softmax_over_the_m_nearest(small, m, rng):
    points = rng.normal(size=(7, 2))
    moved, _ = small(points).step(RobustPlan(0.8, "softmax", m), [[0.1, 0.2]])
    squares = ((points - [0.1, 0.2]) ** 2).sum(axis=1)
    nearest = np.argsort(squares)[:m]
    np.testing.assert_allclose(
        moved[0], softmax(-0.8 * squares[nearest]) @ points[nearest], atol=1e-12
    )


def test_far_points_alone_are_still_weighed(small):
    """exp(-1e4) is no number, but soft-max is: the nearer of two far points has all of it."""
    moved, _ = small([[100.0], [101.0]]).step(RobustPlan(1.0, "softmax"), [[0.0]])
    assert moved.item() == 100.0


def test_a_cluster_without_points_keeps_its_center(small):
    for activation in ("sparsemax", "softmax"):
        moved, step = small(LINE).step(RobustPlan(0.1, activation), [[0.0], [100.0]])
        assert (moved[1].item(), step.update.masses[1].item()) == (100.0, 0.0)
