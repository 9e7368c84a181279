"""KMedoids with the paper's sampler: medoids are rows of the data, and the best that were drawn."""

import numpy as np
import pytest

import lloydformer as lf

X = np.random.default_rng(4).normal(size=(60, 2)) * 0.7 + np.repeat([[0, 0], [4, 4]], 30, axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_medoids_are_rows_to_the_last_bit(dtype, shift):
    points = (X + shift).astype(dtype)
    model = lf.KMedoids(3, method="paper", random_state=0, max_iter=20).fit(points)
    np.testing.assert_array_equal(points[model.medoid_indices_], model.cluster_centers_)


def test_the_best_seen_is_not_worse_than_the_last_and_has_its_loss():
    for seed in range(5):
        best = lf.KMedoids(3, method="paper", random_state=seed, max_iter=30).fit(X)
        last = lf.KMedoids(3, method="paper", random_state=seed, max_iter=30, return_last=True).fit(
            X
        )
        assert best.inertia_ <= last.inertia_
        squares = ((X[:, None] - best.cluster_centers_[None]) ** 2).sum(axis=2).min(axis=1)
        assert best.inertia_ == pytest.approx(squares.sum())


def test_the_last_draw_is_another_one_than_the_best():
    models = [
        lf.KMedoids(2, method="paper", random_state=0, max_iter=50, return_last=last).fit(X)
        for last in (False, True)
    ]
    assert models[0].inertia_ < models[1].inertia_


def test_draws_end_after_patience():
    patient = lf.KMedoids(2, method="paper", random_state=0, max_iter=300, patience=10).fit(X)
    assert 10 < patient.n_iter_ < 300
    assert lf.KMedoids(2, method="paper", random_state=0, max_iter=25).fit(X).n_iter_ == 25


def test_draws_follow_the_random_state():
    """From the same start, only the noise differs."""
    rows = [
        lf.KMedoids(
            2, method="paper", init=X[[0, 59]], random_state=s, max_iter=1, return_last=True
        )
        .fit(X)
        .medoid_indices_.tolist()
        for s in (0, 0, 1, 2, 3)
    ]
    assert rows[0] == rows[1]
    assert len({tuple(r) for r in rows}) > 2


def test_two_clusters_are_found():
    """The best of many draws is near the middle of each cluster."""
    model = lf.KMedoids(2, method="paper", random_state=0, max_iter=200).fit(X)
    assert len(set(model.labels_[:30])) == len(set(model.labels_[30:])) == 1
    middles = np.array([X[:30].mean(axis=0), X[30:].mean(axis=0)])
    away = np.linalg.norm(middles[:, None] - model.cluster_centers_[None], axis=2).min(axis=1)
    assert away.max() < 0.5


def test_no_separation_is_a_wall():
    """With separation=None, a center never draws a point of the other cluster."""
    model = lf.KMedoids(
        2, method="paper", init=X[[0, 59]], separation=None, max_iter=30, return_last=True
    )
    for seed in range(10):
        rows = np.sort(model.set_params(random_state=seed).fit(X).medoid_indices_)
        assert rows[0] < 30 <= rows[1]
