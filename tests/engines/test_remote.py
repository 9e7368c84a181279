"""The session is a seam: an engine in another process gives the same bits, with little traffic."""

import numpy as np
import pytest
import torch
from remote_engine import RemoteEngine
from scipy import sparse

import lloydformer as lf
from lloydformer.circuits.activations import TopK
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, instruction_set
from lloydformer.plans.means import LloydIterations

ESTIMATORS = {
    "kmeans": lf.KMeans(5),
    "kmeans, random": lf.KMeans(5, init="random", n_init=3),
    "kmeans, oversampling": lf.KMeans(5, init="k-means||"),
    "soft": lf.SoftKMeans(5, inverse_temperature=30.0),
    "spherical": lf.SphericalKMeans(5),
    "trimmed": lf.TrimmedKMeans(5, keep=0.8),
    "robust": lf.RobustKMeans(5, inverse_temperature=0.05),
    "robust, top": lf.RobustKMeans(5, inverse_temperature=0.05, activation=TopK(20)),
    "medoids": lf.KMedoids(5, method="paper", max_iter=12, patience=5),
    "relocating": lf.RelocatingKMeans(5, max_iter=80, n_init=2),
    "learned": lf.LearnedKMeans(5, n_steps=3, max_iter=3),
    "circuit": lf.CircuitClusterer(5, recipe=lf.recipes.soft_dot(0.3)),
}
N = 600


def points(n: int = N, d: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + rng.uniform(-4, 4, size=(5, d))[rng.integers(5, size=n)]


def fitted(estimator, engine, X, weights=None):
    model = estimator.__class__(**{**estimator.get_params(), "engine": engine, "random_state": 3})
    model.set_params(max_iter=15) if estimator.__class__ is lf.KMeans else None
    return model.fit(X, sample_weight=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_bits_as_the_chunked_engine(name, weighted):
    X = points()
    weights = np.random.default_rng(1).uniform(0, 2, size=N) if weighted else None
    here, there = (fitted(ESTIMATORS[name], e, X, weights) for e in ("chunked", "remote"))
    np.testing.assert_array_equal(here.cluster_centers_, there.cluster_centers_)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    np.testing.assert_array_equal(here.objective_history_, there.objective_history_)
    assert here.inertia_ == there.inertia_
    np.testing.assert_array_equal(here.predict(X[:50]), there.predict(X[:50]))


def test_sparse_data():
    X = sparse.random(400, 30, 0.2, random_state=0, format="csr")
    here, there = (fitted(lf.KMeans(5), e, X) for e in ("chunked", "remote"))
    np.testing.assert_array_equal(here.cluster_centers_, there.cluster_centers_)
    np.testing.assert_array_equal(here.labels_, there.labels_)


def test_batch_after_batch():
    X = points()
    models = [lf.KMeans(5, engine=e, random_state=0) for e in ("chunked", "remote")]
    for part in np.split(X, 3):
        for model in models:
            model.partial_fit(part)
    np.testing.assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_traffic_of_a_fold_does_not_grow_with_the_points(name):
    """Bounded by a constant times k d numbers, for 600 points and for 6,000."""
    k, d = 5, 4
    for n in (N, 10 * N):
        fitted(ESTIMATORS[name], "remote", points(n))
        folds = [c for c in RemoteEngine.traffic.calls if c[0] == "fold"]
        assert len(folds) >= 2
        sent, received = (max(call[way] for call in folds) for way in (1, 2))
        heads = 4  # of the symmetric layer; candidates of k-means|| and histograms are larger
        bound = 4000 + 8 * heads * (k + 8) * (d + 2) * 8
        if "trimmed" in name or "top" in name:
            bound += 8 * k * 256  # a histogram of one digit for each cluster
        assert sent < bound, (sent, bound)
        assert received < bound, (received, bound)


def test_a_session_that_sent_its_points_would_be_noticed():
    """The bound of the test above is below what 6,000 labels take."""
    assert 4 * 10 * N > 4000 + 8 * 4 * (5 + 8) * (4 + 2) * 8


ENDLESS = {"medoids": {"patience": None, "return_last": True}}
"""Parameters with which only `max_iter` ends a fit."""


def iterations(model) -> int:
    return len(model.objective_history_) - 1


@pytest.mark.parametrize("name", ["kmeans", "soft", "spherical", "trimmed", "medoids"])
def test_one_synchronisation_an_iteration(name, monkeypatch):
    """Beside those of seeding, refilled clusters and the last assignment, which are constant."""
    monkeypatch.setattr(RemoteEngine, "tracking", True)
    counts = {}
    for max_iter in (4, 14):
        estimator = ESTIMATORS[name]
        X = np.random.default_rng(0).normal(size=(N, 4))
        model = estimator.__class__(**{
            **estimator.get_params(), "engine": "remote", "init": X[:5], "n_init": 1,
            "max_iter": max_iter, "random_state": 3, **ENDLESS.get(name, {"tol": 0}),
        }).fit(X)  # fmt: skip
        assert iterations(model) == max_iter
        counts[max_iter] = RemoteEngine.traffic.synchronisations
    assert counts[14] - counts[4] == 10
    assert counts[4] <= 4 + 10


@pytest.mark.parametrize("name", ["kmeans", "soft", "medoids"])
def test_one_message_an_iteration(name):
    calls = {}
    for max_iter in (4, 14):
        X, estimator = np.random.default_rng(0).normal(size=(N, 4)), ESTIMATORS[name]
        estimator.__class__(**{
            **estimator.get_params(), "engine": "remote", "init": X[:5], "n_init": 1,
            "max_iter": max_iter, "random_state": 3, **ENDLESS.get(name, {"tol": 0}),
        }).fit(X)  # fmt: skip
        calls[max_iter] = len(RemoteEngine.traffic.calls)
    assert calls[14] - calls[4] == 10


class Unreadable(TensorBlocks):
    """Data that must not be read."""

    def read(self, start, stop):
        raise AssertionError("the data were read")


def test_a_task_that_an_engine_does_not_have_is_declined_without_touching_data():
    data = Unreadable(torch.zeros(100, 2).double(), given_origin=torch.zeros(2).double())
    task = LloydIterations(torch.zeros(3, 2).double(), 0.0, 5, 0.0, 1.0)
    with Chunked(1).open(data) as session:
        assert session.run(task) is None
        with pytest.raises(AssertionError, match="the data were read"):
            session.fold(_Moments())


class _Moments:
    def map(self, block):
        return block.rows

    def merge(self, first, second):
        return first


@pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here")
def test_labels_that_were_returned_are_not_written_by_later_folds():
    from lloydformer.engines import Native
    from lloydformer.plans.assign import NearestSums

    data = TensorBlocks(torch.from_numpy(points()))
    for engine in (Chunked(1), Native(1), RemoteEngine()):
        with engine.open(data) as session:
            session.fold(NearestSums(session.gather(torch.arange(5))))
            labels = session.labels()
            copy = labels.clone()
            session.fold(NearestSums(session.gather(torch.arange(50, 55))))
            assert torch.equal(labels, copy)
            assert not torch.equal(labels, session.labels())
