"""The first sentences are true: sizes, columns that differ, and how separate the groups are."""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.profiles.clustering import open_clustering
from lloydformer.profiles.sentences import rank_columns, share_between, summarize_clusters

RNG = np.random.default_rng(0)


def clustering(X, k, **more):
    return open_clustering(lf.RelocatingKMeans(k, random_state=0).fit(X), X, **more)


def test_rows_between_two_centers_by_hand():
    X = np.array([[0.0], [1.0], [2.2], [4.0], [4.4], [6.0], [8.0], [10.0]])
    model = lf.KMeans(2, init=[[0.0], [10.0]], max_iter=1).fit(X)
    model.cluster_centers_ = np.array([[0.0], [10.0]])
    # In the middle fifth, from 4 (not included) to 6: only the row at 4.4, and 6 is at its end.
    assert share_between(open_clustering(model, X)) == 1 / 8


@pytest.mark.parametrize("d", [1, 2, 30])
def test_separate_groups_are_told_from_one_group_that_was_cut(d):
    """In any number of dimensions, where the mean silhouette is not comparable."""
    away = np.zeros((1, d))
    away[0, 0] = 8.0
    X = RNG.normal(size=(2000, d))
    assert share_between(clustering(X, 2)) > 0.08
    assert "The groups touch" in summarize_clusters(clustering(X, 2))[-1]
    two = X + away * (np.arange(2000) % 2)[:, None]
    assert share_between(clustering(two, 2)) < 0.01
    assert "clearly separate" in summarize_clusters(clustering(two, 2))[-1]
    five = X + away * 5 / 8 * (np.arange(2000) % 2)[:, None]
    assert 0.005 < share_between(clustering(five, 2)) < 0.05


def test_sizes_are_named_for_few_groups_and_bounded_for_many():
    X = np.repeat(np.arange(7.0)[:, None], np.arange(10, 80, 10), axis=0)
    few = summarize_clusters(clustering(X[:60], 3, names=["a", "b", "c"]))[0]
    assert few.startswith("60 rows with 1 column fall into 3 groups of 30 (")
    assert all(f"({name}, " in few for name in "abc")
    many = summarize_clusters(clustering(X, 7))[0]
    assert "7 groups, the largest of 70 (25%), the smallest of 10 (4%) rows" in many


def test_one_group_and_columns():
    X = RNG.normal(size=(200, 3))
    assert summarize_clusters(clustering(X, 1)) == ["200 rows with 3 columns are in one group."]
    X[:, 1] += np.arange(200) % 2 * 20
    found = clustering(X, 2)
    assert summarize_clusters(found)[1] == "They differ most in x2."
    assert rank_columns(found)[0][0] == "x2"
    assert rank_columns(found)[0][1] > 0.95
