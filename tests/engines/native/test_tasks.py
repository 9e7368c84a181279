"""Small problems are iterated in one call, with the results of the loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, Native, instruction_set
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.seeding import kmeans_plusplus

pytestmark = pytest.mark.skipif(instruction_set() is None, reason="no kernels were built here")

KINDS = {"means": lf.KMeans, "directions": lf.SphericalKMeans}


def fitted(kind, X, weights, callback, **settings):
    """With a callback every iteration is reported, so the loop in Python runs."""
    model = KINDS[kind](engine="native", n_init=1, callback=callback, **settings)
    return model.fit(X, sample_weight=weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_one_call_gives_the_results_of_the_loop(kind, dtype, stored, seed):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(12, 200), rng.integers(2, 9), rng.integers(1, 9)
    X = (rng.normal(size=(n, d)) + 3 * rng.integers(2, size=(n, 1))).astype(dtype)
    init = X[rng.choice(n, size=k, replace=False)].copy()
    if kind == "means" and rng.uniform() < 0.5:
        init[0] += 100  # an empty cluster
    weights = rng.uniform(0, 2, size=n) if rng.uniform() < 0.5 else None
    rules = {"init": init, "n_clusters": int(k), "tol": 0.0, "max_iter": int(rng.integers(1, 30))}
    once = fitted(kind, stored(X), weights, None, **rules)
    loop = fitted(kind, stored(X), weights, lambda progress: None, **rules)
    assert once.n_iter_ == loop.n_iter_
    assert np.array_equal(once.labels_, loop.labels_)
    assert once.inertia_ == pytest.approx(loop.inertia_, rel=1e-6, abs=1e-9)
    assert once.objective_history_ == pytest.approx(loop.objective_history_, rel=1e-5, abs=1e-6)
    scale = np.abs(X).max()
    assert np.abs(once.cluster_centers_ - loop.cluster_centers_).max() <= 1e-6 * scale


@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_seeds_of_one_call_are_those_of_the_folds(weighted, seed):
    """Also where there are fewer different points than clusters."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(12, 200), rng.integers(1, 6), rng.integers(1, 12)
    X = (
        rng.integers(3, size=(n, d)).astype(float)
        if rng.uniform() < 0.3
        else rng.normal(size=(n, d))
    )
    w = torch.from_numpy(rng.integers(0, 3, size=n).astype(float)) if weighted else None
    data = TensorBlocks(torch.from_numpy(X), w)
    if weighted and int((w > 0).sum()) < k:
        return
    found = []
    for engine in (Native(1), Chunked(1)):
        with engine.open(data) as session:
            draw = np.random.RandomState(seed)
            found.append(kmeans_plusplus(session, int(k), draw).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(("n", "in_one_call"), [(200, True), (200_000, False)])
def test_only_small_problems_run_in_one_call(n, in_one_call, monkeypatch):
    X = np.random.default_rng(0).normal(size=(n, 4))
    found, iterate = [], MeansPlan.iterate

    def spy(*arguments):
        result = iterate(*arguments)
        found.append(result is not None)
        return result

    monkeypatch.setattr(MeansPlan, "iterate", spy)
    lf.KMeans(8, init=X[:8], n_init=1, max_iter=3).fit(X)
    assert found == [in_one_call]
