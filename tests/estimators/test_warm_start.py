"""With warm_start, fit begins where the last one ended."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import lloydformer as lf

X = np.random.default_rng(1).normal(size=(400, 3))
MODELS = [
    lf.KMeans(5),
    lf.RelocatingKMeans(5),
    lf.SoftKMeans(5, inverse_temperature=2.0),
    lf.SphericalKMeans(5),
    lf.TrimmedKMeans(5),
    lf.RobustKMeans(5),
    lf.KMedoids(5, max_iter=10),
    lf.CircuitClusterer(5),
    lf.CircuitClusterer(5, recipe=lf.recipes.lloyd(ties="average"), max_iter=4),
]


def name(model):
    return type(model).__name__


def made(model, **parameters):
    return clone(model).set_params(random_state=0, **parameters)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_it_is_a_start_from_the_last_centers(model):
    warm = made(model, warm_start=True, max_iter=3).fit(X)
    last = warm.cluster_centers_.copy()
    warm.fit(X)
    given = made(model, init=last, n_init=1, max_iter=3).fit(X)
    np.testing.assert_array_equal(warm.cluster_centers_, given.cluster_centers_)
    np.testing.assert_array_equal(warm.labels_, given.labels_)
    assert (warm.inertia_, warm._n_init) == (given.inertia_, 1)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_the_first_fit_is_as_without(model):
    warm, cold = (made(model, warm_start=w).fit(X) for w in (True, False))
    np.testing.assert_array_equal(warm.cluster_centers_, cold.cluster_centers_)


def test_without_it_every_fit_begins_anew():
    model = lf.KMeans(5, random_state=0, max_iter=3).fit(X)
    first = model.cluster_centers_.copy()
    np.testing.assert_array_equal(model.fit(X).cluster_centers_, first)


def test_a_few_iterations_at_a_time_come_to_the_same_as_all_at_once():
    whole = lf.KMeans(5, random_state=0, tol=0).fit(X)
    model = lf.KMeans(5, random_state=0, tol=0, max_iter=2, warm_start=True)
    fits = [model.fit(X).inertia_ for _ in range(whole.n_iter_)]
    assert fits == sorted(fits, reverse=True)
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12)
    assert model.n_iter_ == 1  # nothing is left to do


def test_parameters_of_the_user_stay_as_they_are():
    model = lf.KMeans(5, init="random", n_init=4, random_state=0, warm_start=True).fit(X)
    model.fit(X)
    assert (model.init, model.n_init) == ("random", 4)


def test_it_goes_on_after_batches_and_after_loading(tmp_path):
    model = lf.KMeans(5, random_state=0, warm_start=True, max_iter=2).partial_fit(X[:100])
    model.save_pretrained(tmp_path)
    last = model.cluster_centers_.copy()
    expected = lf.KMeans(5, init=last, max_iter=2).fit(X).cluster_centers_
    for one in (model, lf.KMeans.from_pretrained(tmp_path)):
        np.testing.assert_array_equal(one.fit(X).cluster_centers_, expected)


def test_medoids_of_before_that_are_rows_are_kept_if_nothing_is_better():
    model = lf.KMedoids(5, random_state=0, max_iter=30, warm_start=True).fit(X)
    before, rows = model.inertia_, model.medoid_indices_.copy()
    model.set_params(max_iter=1).fit(X)
    assert model.inertia_ <= before
    if model.inertia_ == before:
        np.testing.assert_array_equal(model.medoid_indices_, rows)


def test_medoids_are_rows_of_the_new_data():
    model = lf.KMedoids(5, random_state=0, max_iter=3, warm_start=True).fit(X)
    other = X[::-1] + 0.5
    model.fit(other)
    np.testing.assert_array_equal(model.cluster_centers_, other[model.medoid_indices_])


def test_tensors_and_scaled_data_go_on_too():
    model = lf.KMeans(5, random_state=0, warm_start=True, max_iter=2).fit(X)
    expected = made(lf.KMeans(5), init=model.cluster_centers_.copy(), max_iter=2)
    scaled = lf.data.open_dataset(X, scale="standard")
    model.fit(scaled)
    np.testing.assert_array_equal(model.labels_, expected.fit(scaled).labels_)
    assert isinstance(model.fit(torch.from_numpy(X)).labels_, torch.Tensor)


@pytest.mark.parametrize("model", MODELS[:6], ids=name)
def test_centers_of_another_shape_are_refused(model):
    warm = made(model, warm_start=True).fit(X)
    with pytest.raises(ValueError, match=r"warm_start: .*\(5, 3\), and \(5, 2\).*begin again"):
        warm.fit(X[:, :2])
    with pytest.raises(ValueError, match=r"warm_start: .*\(5, 3\), and \(4, 3\).*begin again"):
        warm.set_params(n_clusters=4).fit(X)
    warm.set_params(warm_start=False).fit(X)


def test_it_is_a_boolean():
    with pytest.raises(ValueError, match="'warm_start' parameter of KMeans"):
        lf.KMeans(5, warm_start="yes").fit(X)
