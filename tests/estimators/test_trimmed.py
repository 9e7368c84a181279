"""TrimmedKMeans: outliers are found, planted centers recovered."""

import numpy as np
import pytest

import lloydformer as lf

PLANTED = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def contaminated(rng):
    """Three clusters of 90 points, and one point in ten far from everything on one side."""
    good = np.repeat(PLANTED, 90, axis=0) + rng.normal(size=(270, 2))
    bad = rng.uniform([40, 40], [60, 60], size=(30, 2))
    return np.concatenate([good, bad])


def worst(model) -> float:
    """How far the planted center that was found the worst is from a center."""
    away = np.linalg.norm(PLANTED[:, None] - model.cluster_centers_[None], axis=2)
    return away.min(axis=1).max()


@pytest.mark.parametrize("seed", range(5))
def test_planted_centers_are_recovered_where_kmeans_is_led_astray(seed):
    points = contaminated(np.random.default_rng(seed))
    init = PLANTED + np.random.default_rng(seed).normal(size=(3, 2))
    # tol=0: the outliers enlarge the tolerance, so that it would end a fit early, with a warning.
    trimmed = lf.TrimmedKMeans(3, keep=0.7, init=init, tol=0).fit(points)
    assert worst(trimmed) < 0.5
    assert worst(lf.KMeans(3, init=init).fit(points)) > 3
    assert set(range(270, 300)) <= set(trimmed.outliers_.tolist())


def test_outliers_are_labelled_minus_one_and_predicted_otherwise(rng):
    points = contaminated(rng)
    model = lf.TrimmedKMeans(3, keep=0.9, random_state=0).fit(points)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), model.outliers_)
    assert 20 < len(model.outliers_) < 40
    assert model.predict(points).min() == 0
    assert set(model.labels_) == {-1, 0, 1, 2}


def test_by_hand():
    """Of 0, 1, 2 and 30 in one cluster three quarters stay: center 1, inertia 2."""
    points = np.array([[0.0], [1.0], [2.0], [30.0]])
    model = lf.TrimmedKMeans(1, keep=0.75, init=[[1.0]]).fit(points)
    assert model.cluster_centers_.item() == 1
    assert model.inertia_ == 2
    assert model.outliers_.tolist() == [3]


def test_keeping_all_is_kmeans(rng):
    points = rng.normal(size=(50, 2))
    trimmed = lf.TrimmedKMeans(3, keep=1.0, init=points[:3]).fit(points)
    plain = lf.KMeans(3, init=points[:3]).fit(points)
    np.testing.assert_allclose(trimmed.cluster_centers_, plain.cluster_centers_, atol=1e-12)
    assert trimmed.outliers_.size == 0
