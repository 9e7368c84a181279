"""Fits over mini-batches: `batch_size` of KMeans and SphericalKMeans."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES, Native, instruction_set
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.native import engine as native_engine
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.minibatches import DrawnRows, best_on_sample


def blobs(n=3000, d=4, k=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-9, 9, size=(k, d))
    return (middles[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


def fitted(X, k=5, weights=None, kind=lf.KMeans, **parameters):
    model = kind(k, **{"batch_size": 256, "max_iter": 3, "random_state": 0} | parameters)
    return model.fit(X, sample_weight=weights)


def test_one_batch_of_all_rows_is_one_iteration():
    X = blobs()
    start = X[:5]
    batch = fitted(X, init=start, batch_size=len(X), max_iter=1)
    whole = lf.KMeans(5, init=start, max_iter=1).fit(X)
    np.testing.assert_allclose(batch.cluster_centers_, whole.cluster_centers_, rtol=1e-12)
    assert np.array_equal(batch.labels_, whole.labels_)
    assert (batch.n_steps_, batch.n_iter_, batch.objective_history_.shape) == (1, 1, (2,))


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SphericalKMeans])
def test_labels_and_inertia_are_of_all_rows(engine, kind):
    X = blobs()
    model = fitted(X, kind=kind, engine=engine)
    assert np.array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(-model.score(X), rel=1e-12)
    assert 1 <= model.n_iter_ <= 3
    assert len(model.objective_history_) == model.n_iter_ + 1
    same = fitted(X, kind=kind, engine="chunked")
    np.testing.assert_allclose(model.cluster_centers_, same.cluster_centers_, rtol=1e-9)
    assert model.n_steps_ == same.n_steps_


@pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here")
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(native_engine, "_ONE_THREAD", 0)
    found = set()
    for n_threads in (1, 2, 3):
        monkeypatch.setitem(ENGINES, "native", lambda n_threads=n_threads: Native(n_threads))
        model = fitted(blobs(dtype=np.float32), batch_size=1100, engine="native")
        found.add((model.cluster_centers_.tobytes(), model.inertia_))
    assert len(found) == 1


def test_passes_and_batches_are_counted_as_in_scikit_learn():
    X = blobs(1000)
    everything = {"tol": 0.0, "max_no_improvement": None, "n_init": 1, "random_state": 0}
    ours = lf.KMeans(5, batch_size=300, max_iter=4, **everything).fit(X)
    theirs = MiniBatchKMeans(5, batch_size=300, max_iter=4, **everything).fit(X)
    assert (ours.n_steps_, ours.n_iter_) == (theirs.n_steps_, theirs.n_iter_) == (13, 4)


def test_it_stops_without_improvement_and_when_centers_rest():
    X = blobs()
    assert fitted(X, max_iter=100, tol=0.0).n_steps_ < 1000
    assert fitted(X, max_iter=100, max_no_improvement=None, tol=0.1).n_iter_ < 30
    rest = fitted(X, max_iter=5, max_no_improvement=None, tol=0.0)
    assert rest.n_iter_ == 5


def test_not_worse_than_scikit_learn():
    X = blobs(4000, 6, 12)
    same = {"batch_size": 256, "max_iter": 4, "tol": 0.0, "max_no_improvement": None, "n_init": 3}
    ours, theirs = (
        np.mean([kind(12, random_state=seed, **same).fit(X).inertia_ for seed in range(8)])
        for kind in (lf.KMeans, MiniBatchKMeans)
    )
    assert ours <= 1.03 * theirs


def test_starved_centers_move():
    X = blobs()
    start = np.vstack([X[:4], np.full((1, 4), 500.0)])
    moved = fitted(X, init=start, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        kept = fitted(X, init=start, max_iter=2, reassignment_ratio=0.0)
    assert np.abs(moved.cluster_centers_).max() < 20
    assert kept.cluster_centers_.max() == pytest.approx(500)
    assert moved.inertia_ < kept.inertia_


def test_small_clusters_are_kept():
    """A far cluster of few rows is starved, and still worth its center."""
    X = np.vstack([blobs(4000, 2, 3), 1e3 + np.random.default_rng(1).normal(size=(8, 2))])
    start = np.vstack([X[:3], X[-1:]])
    model = fitted(
        X, 4, init=lambda *_, **__: start, n_init=1, max_iter=20, tol=0.0, max_no_improvement=None
    )
    assert np.bincount(model.labels_, minlength=4).min() == 8


def test_rows_without_weight_do_not_count():
    X = blobs()
    there = np.random.default_rng(3).random(len(X)) < 0.5
    far = np.where(there[:, None], X, 1e4)
    model = fitted(far, weights=there * 2.0)
    assert np.abs(model.cluster_centers_).max() < 30
    own = ((X[there, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1).sum()
    assert model.inertia_ == pytest.approx(2 * own, rel=1e-9)


def test_rows_are_drawn_by_weight():
    weights = torch.tensor([0.0, 1.0, 0.0, 3.0, 0.0])
    rows = DrawnRows.by_weight(weights, 5, 0)
    drawn = np.bincount(rows.batch(4000).numpy(), minlength=5)
    assert drawn[[0, 2, 4]].sum() == 0
    assert drawn[3] == pytest.approx(3000, abs=150)
    assert sorted(rows.sample(9).tolist()) == [1, 3]


def test_sparse_rows_give_the_same():
    X = blobs(600) * (np.random.default_rng(0).random((600, 4)) < 0.4)
    dense = fitted(X, engine="chunked")
    found = fitted(sparse.csr_matrix(X))
    assert found.inertia_ == pytest.approx(dense.inertia_, rel=0.2)
    assert np.array_equal(found.labels_, found.predict(X))


def test_tensors_warm_starts_and_streams():
    X = torch.from_numpy(blobs())
    model = fitted(X, warm_start=True)
    first = model.inertia_
    assert isinstance(model.cluster_centers_, torch.Tensor)
    assert model.fit(X).inertia_ <= 1.05 * first
    assert model.partial_fit(X[:100]).n_steps_ > 1
    assert "n_steps_" not in vars(model.set_params(batch_size=None).fit(X))


def test_the_callback_hears_of_each_batch_and_may_end_the_fit():
    heard = []

    def stop_at_five(progress):
        heard.append(progress)
        if len(heard) == 5:
            raise KeyboardInterrupt

    X = blobs()
    model = lf.KMeans(5, batch_size=256, random_state=0, callback=stop_at_five)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert [p.iteration for p in heard] == [0, 1, 2, 3, 4]
    assert heard[0].n_points == 256
    assert heard[4].objective == pytest.approx(model.inertia_, rel=0.3)
    assert np.array_equal(model.labels_, model.predict(X))


def test_the_best_of_several_starts():
    X = torch.from_numpy(blobs(600))
    data = TensorBlocks(X)
    good = lf.KMeans(5, random_state=0).fit(X).cluster_centers_ - data.origin
    starts = [good + away for away in (20.0, 0.0, 30.0)]
    best = best_on_sample(
        lambda session: iter(starts),
        lambda rows: Chunked(1).open(data.subset(rows)),
        MeansPlan(),
        DrawnRows.by_weight(None, 600, 0).sample(300),
    )
    assert [found is starts[1] for found in best] == [True]


@pytest.mark.parametrize("empty", ["keep", "error"])
def test_empty_does_not_apply(empty):
    with pytest.raises(ValueError, match=r"empty: found .* with batch_size=256; leave it at"):
        fitted(blobs(), empty=empty)


@pytest.mark.parametrize("wrong", [0, 2.5, "many"])
def test_wrong_batch_sizes(wrong):
    with pytest.raises(ValueError, match="batch_size"):
        fitted(blobs(), batch_size=wrong)


def test_saved_and_loaded(tmp_path):
    model = fitted(blobs(), reassignment_ratio=0.5)
    model.save_pretrained(tmp_path / "model")
    again = lf.KMeans.from_pretrained(tmp_path / "model")
    assert (again.batch_size, again.reassignment_ratio) == (256, 0.5)
    assert again.n_steps_ == model.n_steps_
