"""The plain search for medoids, by hand; `tests/plans/test_medoid_moves.py` compares others."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lloydformer.algorithms.medoid_search import MedoidSearch, pairwise_distances

# two clusters of three; the middle of each is its best medoid
LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])


@pytest.mark.parametrize(
    ("metric", "scipys"),
    [
        ("sqeuclidean", "sqeuclidean"),
        ("euclidean", "euclidean"),
        ("manhattan", "cityblock"),
        ("cosine", "cosine"),
    ],
)
def test_distances_equal_scipys(metric, scipys, rng):
    rows = rng.normal(size=(8, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = cdist(rows, rows, scipys)
    np.testing.assert_allclose(pairwise_distances(rows, rows, metric), expected, atol=1e-12)


def test_losses_and_gains_by_hand():
    search = MedoidSearch(LINE)
    search.begin(np.array([0, 1]))  # distances 0 0 1, and 9^2, 10^2, 11^2 to the row at 1
    assert search.loss == 1 + 81 + 100 + 121
    # the row at 11 in place of that at 0: 1 0 1 and 1 0 1; in place of that at 1: 0 1 4 and 1 0 1
    assert search.gains(np.array([4])).tolist() == [[303 - 4, 303 - 7]]
    # if only the row at 12 may use it: 1 0 1 81 100 1, and 0 1 4 100 121 1
    assert search.gains(np.array([4]), np.array([5])).tolist() == [[303 - 184, 303 - 227]]


def test_one_exchange_and_a_sweep():
    search = MedoidSearch(LINE, weights=np.array([1.0, 1, 1, 1, 1, 0]))
    search.begin(np.array([0, 1]))
    assert search.exchange_once(np.array([3, 4]))
    assert search.medoids.tolist() == [3, 1]  # without the last row, 3 is as good, and comes first
    assert not search.exchange_once(np.array([3, 4]))
    assert search.draw(0, 0, 6).max() < 5  # a row without weight is never drawn
    assert not search.sweep(6)


def test_rows_that_change_their_cluster_are_counted():
    search = MedoidSearch(LINE)
    search.begin(np.array([0, 1]))
    assert search.changed.tolist() == [1, 5]
    search.replace_medoids(np.array([4, 1]))
    assert search.changed.tolist() == [1 + 1 + 3, 5 + 1 + 3]
    search.replace_medoids(np.array([1]), removed=0)
    assert search.changed.tolist() == [9 + 3]


def test_a_relocation_that_does_not_help_is_undone():
    search = MedoidSearch(LINE)
    search.begin(np.array([1, 4]))
    assert not search.relocate(0, 0)
    assert search.medoids.tolist() == [1, 4]
    assert search.changed.tolist() == [3, 3]
