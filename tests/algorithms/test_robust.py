"""Trimmed and robust k-means, and k-medoids, on tiny problems."""

import entmax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from lloydformer.algorithms import Medoids, Robust, Trimmed, run
from lloydformer.algorithms.robust import (
    code_distances,
    largest_shares,
    members,
    softmax,
    sparsemax,
)

HARD = np.eye(3)[[0, 0, 1]]  # three points, three clusters, the last one empty
SHARED = np.array([[0.5, 0.5], [1.0, 0.0]])
LINE = np.array([[0.0], [1.0], [2.0], [10.0]])


@pytest.mark.parametrize(("keep", "center"), [(1.0, 3.25), (0.75, 1.0), (0.5, 0.5), (0.01, 0.0)])
def test_trimmed_by_hand(keep, center):
    """0, 1, 2, 10 around a center at 0: the farthest are dropped first."""
    assert run(Trimmed(keep=keep), LINE, LINE[:1], 1).centers[1].item() == center


def test_trimmed_keeps_points_tied_with_the_last():
    """-1 and 1 are equally far from 0: half of four points is three of them."""
    points = np.array([[0.0], [-1.0], [1.0], [5.0]])
    weights = Trimmed(keep=0.5).weigh(points, np.zeros((1, 1)), np.ones((4, 1)), 0)
    np.testing.assert_allclose(weights, [[1 / 3, 1 / 3, 1 / 3, 0]])


def test_robust_by_hand():
    """Scores 0, -0.25, -1, -25 with gamma = 1/4: sparsemax gives 0.625, 0.375, 0 and 0."""
    weights = Robust(inverse_temperature=0.25).weigh(LINE, LINE[:1], np.ones((4, 1)), 0)
    np.testing.assert_allclose(weights, [[0.625, 0.375, 0, 0]])


def test_robust_weighs_own_points_only():
    weights = Robust(inverse_temperature=1e-6).weigh(LINE, LINE[[0, 3]], np.eye(2)[[0, 0, 0, 1]], 0)
    assert (weights > 0).tolist() == [[True, True, True, False], [False, False, False, True]]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_sparsemax_and_softmax_equal_those_of_libraries(row):
    scores = np.array(row)
    expected = entmax.sparsemax(torch.tensor(scores), dim=-1).numpy()
    np.testing.assert_allclose(sparsemax(scores), expected, atol=1e-12)
    np.testing.assert_allclose(softmax(scores), special.softmax(scores), atol=1e-12)


def test_code_distances_by_hand():
    """0 for own points, 2 for those of another cluster, 1/2 for a point that is half its own."""
    assert code_distances(HARD).tolist() == [[0, 0, 2], [2, 2, 0], [2, 2, 2]]
    assert code_distances(SHARED).tolist() == [[0.5, 0], [0.5, 2]]


def test_members_by_hand():
    """All points if the cluster is empty; of split points those with the largest share."""
    assert members(HARD).tolist() == [[1, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert members(SHARED).tolist() == [[0, 1], [1, 0]]
    assert largest_shares(HARD).tolist() == members(HARD).tolist()


def test_medoids_draw_with_the_probabilities_of_the_algorithm():
    """exp(-d^2), times exp(-2 delta) for points of the other cluster."""
    points, delta = np.array([[0.0], [0.5], [1.5]]), 0.3
    assignments = np.eye(2)[[0, 0, 1]]
    draws = [
        Medoids(separation=delta, seed=s).weigh(points, points[[0, 2]], assignments, 0)[0]
        for s in range(2000)
    ]
    scores = -np.array([0, 0.25, 2.25 + 2 * delta])
    expected = 2000 * special.softmax(scores)
    assert stats.chisquare(np.sum(draws, axis=0), expected).pvalue > 0.01


def test_medoids_draw_new_noise_in_each_iteration():
    points = np.zeros((50, 1))
    chosen = {
        Medoids().weigh(points, points[:1], np.ones((50, 1)), t).argmax().item() for t in range(20)
    }
    assert len(chosen) > 10
