"""`distances_to_centers`, `compares_directions` and `check_parameters`."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import pairwise_distances

import lloydformer as lf
from lloydformer.plans.medoid_moves import METRICS

X = np.random.default_rng(0).normal(size=(80, 3))
MODELS = [lf.KMeans(4, random_state=0), lf.SphericalKMeans(4, random_state=0),
          lf.TrimmedKMeans(4, random_state=0), lf.SoftKMeans(4, random_state=0)]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_distances_are_those_of_transform(model):
    model.fit(X)
    every = model.transform(X)
    np.testing.assert_allclose(model.distances_to_centers(X), every.min(axis=1), atol=1e-7)
    labels = np.arange(80) % 4
    wanted = every[np.arange(80), labels]
    np.testing.assert_allclose(model.distances_to_centers(X, labels), wanted, atol=1e-7)


def chebyshev(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", [*METRICS, "precomputed", chebyshev])
def test_distances_to_medoids_are_those_of_transform(metric, dtype):
    rows = (pairwise_distances(X) if metric == "precomputed" else X).astype(dtype)
    model = lf.KMedoids(4, metric=metric, random_state=0).fit(rows)
    every = model.transform(rows)
    slack = {"rtol": 1e-5, "atol": 1e-3 if dtype == np.float32 else 1e-7}
    np.testing.assert_allclose(model.distances_to_centers(rows), every.min(axis=1), **slack)
    labels = np.arange(80) % 4
    wanted = every[np.arange(80), labels]
    np.testing.assert_allclose(model.distances_to_centers(rows, labels), wanted, **slack)


def test_manhattan_distances_of_scaled_blocks_are_scaled():
    blocks = lf.data.open_dataset(X * [1, 10, 100], scale="standard")
    model = lf.KMedoids(4, metric="manhattan", random_state=0).fit(blocks)
    found = model.distances_to_centers(blocks, model.labels_)
    assert found.sum() == pytest.approx(model.inertia_)
    np.testing.assert_allclose(found, model.transform(blocks).min(axis=1), rtol=1e-12)


def test_distances_of_scaled_blocks_are_scaled():
    blocks = lf.data.open_dataset(X * [1, 10, 100], scale="standard")
    model = lf.KMeans(4, random_state=0).fit(blocks)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    centers = (model.cluster_centers_ / [1, 10, 100] - X.mean(axis=0)) / X.std(axis=0)
    wanted = np.linalg.norm(scaled - centers[model.labels_], axis=1)
    np.testing.assert_allclose(model.distances_to_centers(blocks, model.labels_), wanted)


def test_tensors_and_sparse_matrices():
    model = lf.KMeans(4, random_state=0).fit(torch.tensor(X))
    found = model.distances_to_centers(torch.tensor(X))
    assert isinstance(found, torch.Tensor)
    rows = sparse.csr_matrix(X)
    model = lf.KMeans(4, init=X[:4], n_init=1).fit(rows)
    wanted = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    np.testing.assert_allclose(model.distances_to_centers(rows), wanted, atol=1e-6)


def test_which_estimators_compare_directions():
    assert [model.compares_directions for model in MODELS] == [False, True, False, False]
    assert lf.CircuitClusterer(recipe=lf.recipes.spherical()).compares_directions


def test_parameters_are_checked_without_data():
    lf.TrimmedKMeans(3, keep=0.5).check_parameters()
    with pytest.raises(ValueError, match="'keep' parameter"):
        lf.TrimmedKMeans(3, keep=2.0).check_parameters()
