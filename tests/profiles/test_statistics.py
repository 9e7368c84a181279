"""Statistics of columns are those of pandas and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_selection import f_classif

from lloydformer.profiles import statistics
from lloydformer.profiles.statistics import compute_statistics, share_of_words

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1, 10, 0.1, 1] + RNG.integers(0, 3, (300, 1))
CLUSTERS = RNG.integers(0, 4, 300)


def test_means_and_quartiles_are_those_of_pandas():
    found = compute_statistics(torch.from_numpy(X), CLUSTERS, 4)
    groups = pd.DataFrame(X).groupby(CLUSTERS)
    np.testing.assert_allclose(found.means, groups.mean())
    for i, share in enumerate((0.25, 0.5, 0.75)):
        np.testing.assert_allclose(found.quartiles[i], groups.quantile(share))
        np.testing.assert_allclose(found.overall_quartiles[i], pd.DataFrame(X).quantile(share))
    np.testing.assert_allclose(found.spread, X.std(axis=0))
    z = (groups.mean() - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found.scores, z)


def test_the_explained_share_follows_from_the_f_statistic():
    """Eta squared is F (k - 1) / (F (k - 1) + n - k)."""
    found = compute_statistics(torch.from_numpy(X), CLUSTERS, 4).explained
    between = f_classif(X, CLUSTERS)[0] * 3
    np.testing.assert_allclose(found, between / (between + 300 - 4))


def test_by_hand():
    rows = torch.tensor([[0.0, 5.0], [2.0, 5.0], [7.0, 5.0], [9.0, 5.0]])
    found = compute_statistics(rows, np.array([0, 0, 1, -1]), 3)
    assert found.means[:2].tolist() == [[1, 5], [7, 5]]
    assert np.isnan(found.means[2]).all()
    assert np.isnan(found.quartiles[:, 2]).all()
    assert found.overall.tolist() == [3, 5]
    # squares 9 + 1 + 16 = 26, between 2 * 4 + 16 = 24
    np.testing.assert_allclose(found.explained, [24 / 26, 0])
    assert found.scores[:, 1].tolist() == [0, 0, 0]
    assert found.scores[2].tolist() == [0, 0]


@given(st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any))
def test_a_row_of_weight_two_counts_twice(weights):
    rows, clusters = X[:12], np.arange(12) % 2
    if not all(np.bincount(clusters, weights)):
        weights = [1, 1, *weights[2:]]
    repeated = np.repeat(np.arange(12), weights)
    own = compute_statistics(torch.from_numpy(rows), clusters, 2, np.array(weights, float))
    other = compute_statistics(torch.from_numpy(rows[repeated]), clusters[repeated], 2)
    np.testing.assert_allclose(own.means, other.means, atol=1e-12)
    np.testing.assert_allclose(own.explained, other.explained, atol=1e-9)
    for j in range(2):
        expected = np.quantile(
            rows[repeated][clusters[repeated] == j],
            (0.25, 0.5, 0.75),
            axis=0,
            method="inverted_cdf",
        )
        np.testing.assert_allclose(own.quartiles[:, j], expected)


def test_missing_values_count_nowhere():
    rows = X.copy()
    rows[RNG.random(rows.shape) < 0.3] = np.nan
    found = compute_statistics(torch.from_numpy(rows), CLUSTERS, 4)
    groups = pd.DataFrame(rows).groupby(CLUSTERS)
    np.testing.assert_allclose(found.means, groups.mean())
    np.testing.assert_allclose(found.quartiles[1], groups.median())
    np.testing.assert_allclose(found.spread, np.nanstd(rows, axis=0))


def test_sparse_rows_have_the_statistics_of_dense_ones():
    rows = X * (RNG.random(X.shape) < 0.4)
    dense = compute_statistics(torch.from_numpy(rows), CLUSTERS, 4)
    for matrix in (sparse.csr_matrix(rows), sparse.csr_array(rows)):
        found = compute_statistics(matrix, CLUSTERS, 4)
        for name, values in vars(dense).items():
            np.testing.assert_allclose(getattr(found, name), values, atol=1e-12, err_msg=name)


def test_of_many_columns_those_are_kept_that_clusters_explain(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_COLUMNS", 2)
    rows = RNG.normal(size=(300, 6))
    rows[:, [1, 4]] += 5 * CLUSTERS[:, None]
    found = compute_statistics(torch.from_numpy(rows), CLUSTERS, 4)
    assert found.chosen.tolist() == [1, 4]
    assert found.quartiles.shape == (3, 4, 2)


def test_quartiles_of_large_clusters_are_those_of_a_sample_drawn_by_the_seed():
    rows = torch.from_numpy(RNG.normal(size=(60_000, 1)))
    clusters = (np.arange(60_000) % 3 == 0).astype(np.int64)
    first, same, other = (
        compute_statistics(rows, clusters, 2, seed=seed).quartiles for seed in (0, 0, 1)
    )
    assert (first == same).all()
    assert (first != other).any()
    np.testing.assert_allclose(first[1], 0, atol=0.04)  # three standard errors
    np.testing.assert_allclose(first[2], 0.6745, atol=0.04)


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_shares_of_words(weight):
    codes, clusters = np.array([0, 1, 1, -1, 0]), np.array([0, 0, 1, 1, -1])
    shares, overall = share_of_words(codes, 2, clusters, 2, np.full(5, weight))
    assert shares.tolist() == [[0.5, 0.5], [0, 1]]
    np.testing.assert_allclose(overall, [1 / 3, 2 / 3])
