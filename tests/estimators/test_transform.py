"""Distances to the centers: exact where rows and centers coincide, also in float32."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances

import lloydformer as lf


@pytest.mark.parametrize("shift", [0.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centers_have_distance_zero_to_themselves(dtype, shift, rng):
    """scikit-learn's own test of `transform` asks for zeros on the diagonal."""
    X = (rng.normal(size=(300, 6)) + shift).astype(dtype)
    model = lf.KMeans(9, random_state=0).fit(X)
    found = model.transform(model.cluster_centers_)
    np.testing.assert_array_equal(found.diagonal(), np.zeros(9, dtype))
    expected = pairwise_distances(model.cluster_centers_.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_near_a_center(dtype, rng):
    """Points 1e-4 spreads away from a center: the expansion of the square would lose them."""
    X = rng.normal(size=(200, 8)).astype(dtype)
    model = lf.KMeans(4, random_state=0).fit(X)
    near = (model.cluster_centers_ + 1e-4 * rng.normal(size=(4, 8))).astype(dtype)
    exact = np.linalg.norm(
        near[:, None].astype(np.float64) - model.cluster_centers_.astype(np.float64), axis=2
    )
    tolerance = 2e-3 if dtype == np.float32 else 1e-9  # coordinates are rounded themselves
    np.testing.assert_allclose(model.transform(near), exact, rtol=tolerance)


def test_sparse_rows(rng):
    X = sparse.random(200, 12, 0.3, random_state=0, format="csr")
    model = lf.KMeans(5, random_state=0).fit(X)
    found = model.transform(sparse.csr_matrix(model.cluster_centers_))
    np.testing.assert_array_equal(found.diagonal(), np.zeros(5))
    np.testing.assert_allclose(
        model.transform(X), pairwise_distances(X.toarray(), model.cluster_centers_), rtol=1e-9
    )
