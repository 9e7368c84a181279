"""A model and rows of any kind become the same clustering, and the model is not changed."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.pipeline import make_pipeline

import lloydformer as lf
from lloydformer.profiles.clustering import open_clustering

RNG = np.random.default_rng(0)
MIDDLES = np.array([[1.0, 1, 1], [9, 1, 4], [1, 9, 7]])
X = MIDDLES[np.arange(150) % 3] + RNG.normal(size=(150, 3))
MODEL = lf.KMeans(3, random_state=0).fit(X)
KINDS = {
    "frame": lambda: pd.DataFrame(X, columns=["x1", "x2", "x3"]),
    "tensor": lambda: torch.from_numpy(X),
    "blocks": lambda: lf.data.open_dataset(X),
    "sparse": lambda: sparse.csr_matrix(X),
    "sparse array": lambda: sparse.csc_array(X),
    "list": lambda: X.tolist(),
    "float32": lambda: X.astype(np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_is_described_alike(kind):
    described = lf.describe(MODEL, KINDS[kind]())
    assert str(described) == str(lf.describe(MODEL, X))


@pytest.mark.parametrize(
    "model",
    [
        lf.SoftKMeans(3, random_state=0),
        lf.SphericalKMeans(3, random_state=0),
        lf.RobustKMeans(3, random_state=0),
        lf.RelocatingKMeans(3, random_state=0),
        lf.KMedoids(3, random_state=0),
        lf.KMedoids(3, metric="manhattan", random_state=0),
        lf.KMedoids(3, metric="cosine", random_state=0),
        lf.CircuitClusterer(3, recipe=lf.recipes.lloyd(), random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'metric', '')}",
)
def test_every_estimator_is_described_and_not_changed(model):
    model.fit(X)
    before = pickle.dumps(model)
    found = open_clustering(model, X)
    assert pickle.dumps(model) == before
    assert found.totals.sizes == np.bincount(model.labels_, minlength=3).tolist()
    assert found.silhouette is not None
    assert "3 groups" in lf.describe(model, X).summary


def test_spherical_sparse_rows():
    rows = sparse.random_array((200, 50), density=0.2, rng=RNG, format="csr")
    model = lf.SphericalKMeans(4, random_state=0, zero_rows="ignore").fit(rows)
    found = open_clustering(model, rows)
    dense = open_clustering(model, rows.toarray())
    assert found.totals.sizes == dense.totals.sizes
    assert found.silhouette == pytest.approx(dense.silhouette)
    assert len(lf.describe(model, rows).sentences) == 4


def test_rows_that_the_fit_left_out_are_left_out_if_they_are_its_rows():
    far = np.vstack([X, [[50.0, 50, 50]]])
    model = lf.TrimmedKMeans(3, keep=0.97, init=MIDDLES).fit(far)
    found = open_clustering(model, far)
    assert found.assignment.left_out.nonzero()[:, 0].tolist() == model.outliers_.tolist()
    assert sum(found.totals.sizes) == len(far) - len(model.outliers_)
    assert f"{len(model.outliers_)} rows were left out" in lf.describe(model, far).summary
    other = open_clustering(model, far[::-1])
    assert other.assignment.left_out is None  # other rows: those that the fit left out are unknown
    assert sum(other.totals.sizes) == len(far)


def test_new_rows_and_models_without_labels(tmp_path):
    found = open_clustering(MODEL, X[:40])
    assert found.n_rows == 40
    model = lf.KMeans(3, random_state=0)
    for start in range(0, 150, 50):
        model.partial_fit(X[start : start + 50])
    del model.labels_
    assert open_clustering(model, X).totals.n_rows == 150


def test_a_row_of_weight_two_counts_twice():
    weights = RNG.integers(0, 3, 150)
    twice = open_clustering(MODEL, np.repeat(X, weights, axis=0))
    weighted = open_clustering(MODEL, X, sample_weight=weights)
    np.testing.assert_allclose(weighted.shares, twice.shares)
    np.testing.assert_allclose(weighted.statistics.means, twice.statistics.means)
    assert weighted.totals.n_rows == 150


def test_a_fit_that_scaled_the_columns():
    blocks = lf.data.open_dataset(X * [1, 1000, 1], scale="standard")
    model = lf.KMeans(3, random_state=0).fit(blocks)
    found = open_clustering(model, blocks)
    np.testing.assert_allclose(found.statistics.means, model.cluster_centers_, rtol=1e-9)
    assert found.silhouette > 0.5


def test_names_are_those_of_the_fit_or_of_the_frame():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"row {i}" for i in range(150)])
    model = lf.KMeans(3, random_state=0).fit(frame)
    found = open_clustering(model, frame)
    assert found.columns == ("a", "b", "c")
    assert found.show_rows([3])[1][0][0] == "row 3"
    assert open_clustering(MODEL, X).columns == ("x1", "x2", "x3")
    assert open_clustering(MODEL, frame[["a", "b", "c"]].rename(columns=str.upper)).columns == (
        *"ABC",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["a", "b"]}, "names: found 2 names for 3 clusters"),
        ({"names": "abc"}, "names: found 'abc'; pass a list"),
        ({"names": {3: "a"}}, "names: found cluster 3; clusters are numbered 0 to 2"),
        ({"extra": 3}, "extra: found int; pass a data frame"),
        ({"extra": {"a": [1, 2]}}, "extra: column 'a' has the shape"),
        ({"sample_weight": [1.0]}, "sample_weight: found shape"),
    ],
)
def test_arguments_that_do_not_belong_to_the_rows_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        lf.describe(MODEL, X, **arguments)


def test_what_cannot_be_described_is_refused():
    with pytest.raises(ValueError, match="model: found Pipeline; pass a fitted estimator"):
        lf.describe(make_pipeline(MODEL), X)
    distances = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    model = lf.KMedoids(2, metric="precomputed", random_state=0).fit(distances)
    with pytest.raises(ValueError, match="model: its metric is precomputed"):
        lf.describe(model, distances)
    with pytest.raises(ValueError, match="found a Shard; pass rows that are in memory"):
        lf.describe(MODEL, lf.Shard(X))
    with pytest.raises(ValueError, match="X has 2 features"):
        lf.describe(MODEL, X[:, :2])
    with pytest.raises(Exception, match="not fitted"):
        lf.describe(lf.KMeans(2), X)


def test_a_dask_collection_is_refused():
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="found a dask collection"):
        lf.describe(MODEL, array.from_array(X))
