"""Objectives that fall, labels that belong to the centers, callbacks, and Ctrl-C."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from sklearn.base import clone

import lloydformer as lf

RNG = np.random.default_rng(9)
X = RNG.normal(size=(120, 3)) + RNG.uniform(-3, 3, size=(5, 3))[np.arange(120) % 5] + 1
ESTIMATORS = {
    "kmeans": lf.KMeans(),
    "relocating": lf.RelocatingKMeans(),
    "soft": lf.SoftKMeans(inverse_temperature=0.4),
    "spherical": lf.SphericalKMeans(),
    "trimmed": lf.TrimmedKMeans(keep=0.9),
    "robust": lf.RobustKMeans(inverse_temperature=0.02),
    "medoids": lf.KMedoids(max_iter=20),
    "circuit": lf.CircuitClusterer(),
}


@pytest.fixture(params=ESTIMATORS)
def model(request):
    return clone(ESTIMATORS[request.param]).set_params(
        n_clusters=5, init="random", n_init=1, random_state=1
    )


@pytest.mark.parametrize("name", ["kmeans", "relocating", "soft", "spherical"])
@pytest.mark.parametrize("seed", range(5))
def test_objectives_never_rise(name, seed):
    model = clone(ESTIMATORS[name]).set_params(
        n_clusters=5, init="random", random_state=seed, n_init=1
    )
    history = model.fit(X).objective_history_
    assert (np.diff(history) <= 1e-12 * np.abs(history[:-1])).all()
    assert history[-1] < history[0]


def test_the_history_has_every_iteration_and_the_end(model):
    model.fit(X)
    assert len(model.objective_history_) == model.n_iter_ + 1


@pytest.mark.parametrize(
    "name", ["kmeans", "relocating", "spherical", "trimmed", "robust", "circuit"]
)
def test_it_ends_with_the_inertia(name):
    model = clone(ESTIMATORS[name]).set_params(n_clusters=5, random_state=0).fit(X)
    assert model.objective_history_[-1] == model.inertia_


def test_the_soft_one_ends_with_the_free_energy():
    model = lf.SoftKMeans(5, inverse_temperature=0.4, random_state=0).fit(X)
    squares = model.transform(X) ** 2
    energy = -logsumexp(-0.4 * squares, axis=1).sum() / 0.4
    assert model.objective_history_[-1] == pytest.approx(energy)
    assert model.inertia_ == pytest.approx(squares.min(axis=1).sum())


def test_spherical_inertia_is_the_sum_of_cosine_distances():
    model = lf.SphericalKMeans(5, random_state=0).fit(X)
    cosines = (X / np.linalg.norm(X, axis=1, keepdims=True)) @ model.cluster_centers_.T
    assert model.inertia_ == pytest.approx((1 - cosines.max(axis=1)).sum())
    np.testing.assert_allclose(model.transform(X), 1 - cosines, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_belong_to_the_centers(model, dtype):
    points = X.astype(dtype)
    labels = model.fit_predict(points)
    predicted = model.predict(points)
    kept = labels >= 0
    np.testing.assert_array_equal(labels[kept], predicted[kept])
    assert kept.all() or isinstance(model, lf.TrimmedKMeans)
    np.testing.assert_array_equal(predicted, model.transform(points).argmin(axis=1))


def test_score_is_minus_the_inertia(model):
    assert model.fit(X).score(X) == pytest.approx(-model.inertia_)


def test_the_same_random_state_is_the_same_result(model):
    first = model.fit(X).cluster_centers_
    np.testing.assert_array_equal(first, model.fit(X).cluster_centers_)
    assert (first != model.set_params(random_state=2).fit(X).cluster_centers_).any()


def test_a_callback_hears_each_iteration(model):
    heard = []
    model.set_params(callback=heard.append).fit(X)
    assert [p.iteration for p in heard] == list(range(model.n_iter_))
    # What rounding lets rise is levelled in the history of relocations.
    rounding = 1e-12 if isinstance(model, lf.RelocatingKMeans) else 0
    objectives = [progress.objective for progress in heard]
    np.testing.assert_allclose(objectives, model.objective_history_[:-1], rtol=rounding, atol=0)


def test_ctrl_c_leaves_what_was_found_so_far(model):
    def stop(progress):
        if progress.iteration == 1:
            raise KeyboardInterrupt

    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=stop, max_iter=50).fit(X)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == model.labels_.shape
    assert torch.get_num_threads() == threads
