"""Profiles name what sets a cluster apart, and say where a cluster in the middle is."""

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf
from lloydformer.profiles.clustering import open_clustering
from lloydformer.profiles.profile import profile_clusters

RNG = np.random.default_rng(0)


def profiles(X, centers, **more):
    model = lf.KMeans(len(centers), init=np.array(centers, float), max_iter=50).fit(X)
    return profile_clusters(open_clustering(model, X, **more))


def test_a_cluster_in_the_middle_says_its_ranges():
    centers = [[0, 0], [10, 10], [5, 5]]
    X = np.array(centers)[np.arange(300) % 3] + RNG.normal(size=(300, 2)) * 0.2
    middle = profiles(pd.DataFrame(X, columns=["width", "height"]), centers)[2]
    sentence = middle.sentence()
    assert "near the middle of the data in every column: half of its rows have" in sentence
    low, high = np.quantile(X[2::3, 0], (0.25, 0.75))
    assert f"width {low:.3g} to {high:.3g}" in sentence


def test_means_are_given_where_medians_do_not_show_the_difference():
    X = np.zeros((400, 2))
    X[:, 0] = np.arange(400) % 2 * 900.0
    X[1:180:2, 1] = 100  # 90 of the 200 rows of one cluster, none of the other
    sentence = profiles(X, [[0, 0], [900, 45]])[1].sentence()
    assert "high x2 (mean 45, of all rows 22.5)" in sentence
    assert "high x1 (median 900, of all rows 450)" in sentence


def test_columns_that_were_not_clustered():
    # The median of two dates with equally many rows is the middle: 2021-12-31 at noon.
    X = np.repeat([[0.0], [9.0]], 60, axis=0) + RNG.normal(size=(120, 1))
    extra = pd.DataFrame(
        {
            "customer_id": RNG.permutation(120),
            "city": np.repeat(["Rome", "Oslo"], 60),
            "since": np.repeat(pd.to_datetime(["2020-01-01", "2024-01-01"]), 60),
            "noise": RNG.normal(size=120),
        }
    )
    clustering = open_clustering(lf.KMeans(2, init=[[0.0], [9.0]]).fit(X), X, extra=extra)
    assert clustering.left_out_columns == ("customer_id",)
    first, second = profile_clusters(clustering)
    assert "Not clustered: city is Rome in 100% of its rows (50% of all)" in first.sentence()
    assert "early since (median 2020-01-01, of all rows 2021-12-31)" in first.sentence()
    assert "late since (median 2024-01-01" in second.sentence()
    assert "noise" not in first.sentence()
    assert {trait.column for trait in first.others} == {"city", "since", "noise"}


def test_examples_are_the_nearest_rows_and_rows_at_the_border():
    X = np.array([[0.0], [0.1], [-0.2], [0.5], [3.9], [9.0], [9.1], [9.3], [8.5]])
    first, second = profiles(X, [[0], [9]])
    center = X[:5].mean()
    nearest = np.argsort(np.abs(X[:5, 0] - center))
    assert [e.row for e in first.examples if e.kind == "typical"] == nearest[:3].tolist()
    edges = [(e.row, e.neighbour) for e in first.examples if e.kind == "edge"]
    assert edges[0] == (4, 1)  # the row at 3.9
    assert not {e.row for e in first.examples if e.kind == "typical"} & {row for row, _ in edges}
    assert all(e.row >= 5 for e in second.examples)


def test_an_empty_cluster_has_a_profile():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = lf.KMeans(3, random_state=0, empty="keep", init=[[0.0], [1.0], [50.0]]).fit(X)
    found = profile_clusters(open_clustering(model, X))
    assert found[2].sentence() == "No rows."
    assert found[2].typical is None


def test_one_cluster_has_a_profile():
    (only,) = profiles(RNG.normal(size=(50, 2)), [[0, 0]])
    assert only.sentence().startswith("50 rows (100.0%), near the middle of the data")
    assert only.silhouette is None
