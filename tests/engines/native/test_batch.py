"""Many problems by kernels and by tensors: the same draws, the same results."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.engines import instruction_set

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
B, N, D, K = 40, 50, 3, 4
RECIPES = {"lloyd": lf.recipes.lloyd(), "spherical": lf.recipes.spherical()}


@pytest.fixture(params=RECIPES)
def recipe(request):
    return RECIPES[request.param]


@pytest.fixture(params=[np.float32, np.float64])
def points(request) -> np.ndarray:
    rng = np.random.default_rng(0)
    middles = rng.uniform(-3, 3, size=(B, K, D))
    own = rng.integers(K, size=(B, N))
    points = middles[np.arange(B)[:, None], own] + rng.normal(size=(B, N, D))
    return points.astype(request.param)


@pytest.fixture
def both(monkeypatch):
    """A batch by kernels, then by tensors."""

    def fit(points, **how):
        how = {"n_clusters": K, "random_state": 5} | how
        by_kernels = lf.fit_batch(points, **how)
        with monkeypatch.context() as patch:
            patch.setattr("lloydformer.solving.batch.fit.has_cpu_kernel", lambda plan, x: False)
            return by_kernels, lf.fit_batch(points, **how)

    return fit


def check(by_kernels, by_tensors, dtype) -> None:
    """Centers are returned in the points' precision, and tensors subtract their middle in it."""
    close = 1e-6 if dtype == np.float32 else 1e-10
    np.testing.assert_array_equal(by_kernels.labels, by_tensors.labels)
    np.testing.assert_array_equal(by_kernels.n_iter, by_tensors.n_iter)
    np.testing.assert_allclose(by_kernels.centers, by_tensors.centers, rtol=close, atol=close)
    np.testing.assert_allclose(by_kernels.inertia, by_tensors.inertia, rtol=close, atol=1e-12)
    assert by_kernels.centers.dtype == by_tensors.centers.dtype == dtype


@pytest.mark.parametrize("init", ["k-means++", "random", "array"])
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_every_start(both, points, recipe, init, k):
    init = points[:, :k] if init == "array" else init
    check(*both(points, n_clusters=k, init=init, recipe=recipe), points.dtype)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_every_point_a_cluster(both, points, init):
    """In any order: the last two points are equally good seeds."""
    for found in both(points, n_clusters=N, init=init):
        away = np.abs(np.sort(found.centers, axis=1) - np.sort(points, axis=1)).max()
        assert away <= 8 * np.finfo(points.dtype).eps
        assert (found.inertia == 0).all()
        assert (np.sort(found.labels, axis=1) == np.arange(N)).all()


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_weights_some_of_them_zero(both, points, recipe, init):
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.1, 3, size=(B, N)) * (rng.random((B, N)) < 0.8)
    check(*both(points, init=init, recipe=recipe, sample_weight=weights), points.dtype)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_masked_points(both, points, recipe, init):
    """Their values do not matter."""
    mask = np.arange(N) < np.random.default_rng(2).integers(K + 1, N + 1, size=B)[:, None]
    points[~mask] = 1e6
    by_kernels, by_tensors = both(points, init=init, recipe=recipe, mask=mask)
    check(by_kernels, by_tensors, points.dtype)
    assert (by_kernels.labels[~mask] == -1).all()


@pytest.mark.parametrize("n_far", [1, 2, 3])
def test_empty_clusters(both, points, n_far):
    starts = points[:, :K].copy()
    starts[:, :n_far] += 100
    by_kernels, by_tensors = both(points, init=starts)
    check(by_kernels, by_tensors, points.dtype)
    assert all(len(np.unique(labels)) == K for labels in by_kernels.labels)


def test_one_feature_and_many(both):
    rng = np.random.default_rng(3)
    for d in (1, 2, 8, 17, 70):
        check(*both(rng.normal(size=(10, 80, d))), np.float64)


def test_stop_rules(both, points):
    for rules in ({"max_iter": 1}, {"max_iter": 3}, {"tol": 0.0}, {"tol": 0.5}):
        check(*both(points, **rules), points.dtype)


def test_far_from_zero(both):
    """Each problem is centered at its own middle."""
    x = np.random.default_rng(4).normal(size=(B, N, D)) + 1e6 * np.arange(B)[:, None, None]
    by_kernels, by_tensors = both(x)
    np.testing.assert_array_equal(by_kernels.labels, by_tensors.labels)
    np.testing.assert_allclose(by_kernels.inertia, by_tensors.inertia, rtol=1e-9)


def test_inputs_are_not_written_to(points, recipe):
    given, starts = points.copy(), points[:, :K].astype(float)
    before, weights = starts.copy(), np.ones((B, N))
    lf.fit_batch(given, K, init=starts, recipe=recipe, sample_weight=weights)
    np.testing.assert_array_equal(given, points)
    np.testing.assert_array_equal(starts, before)
    np.testing.assert_array_equal(weights, 1)


def test_tensors_of_any_memory_layout(points):
    turned = torch.from_numpy(np.ascontiguousarray(points.transpose(2, 0, 1))).permute(1, 2, 0)
    one, other = (lf.fit_batch(p, K, random_state=0) for p in (turned, points))
    np.testing.assert_array_equal(one.labels.numpy(), other.labels)
    np.testing.assert_array_equal(one.centers.numpy(), other.centers)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_threads_do_not_change_a_bit(monkeypatch, points, recipe, n_threads):
    alone = lf.fit_batch(points, K, recipe=recipe, random_state=0)
    monkeypatch.setattr("lloydformer.solving.batch.by_kernels.allowed_threads", lambda: n_threads)
    together = lf.fit_batch(points, K, recipe=recipe, random_state=0)
    for one, other in zip(vars(alone).values(), vars(together).values(), strict=True):
        np.testing.assert_array_equal(one, other)
