"""Inputs are not written to, any memory layout is read, and very small or odd data are fitted."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf
from lloydformer.engines import instruction_set

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
X = np.random.default_rng(1).normal(size=(500, 5)) + 3
WEIGHTS = np.random.default_rng(2).uniform(0.5, 2, size=500)
MODELS = {
    "kmeans": lf.KMeans(),
    "relocating": lf.RelocatingKMeans(),
    "spherical": lf.SphericalKMeans(),
    "soft": lf.SoftKMeans(inverse_temperature=30.0),
    "trimmed": lf.TrimmedKMeans(keep=0.8),
    "robust": lf.RobustKMeans(inverse_temperature=0.05),
}


@pytest.fixture(params=MODELS)
def model(request):
    chosen = clone(MODELS[request.param])
    return chosen.set_params(n_clusters=4, random_state=0, max_iter=18, engine="native")


def found(model, points, weights=None):
    fitted = clone(model).fit(points, sample_weight=weights)
    return [np.asarray(v) for v in (fitted.cluster_centers_, fitted.labels_, fitted.inertia_)]


def same(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_are_not_written_to(model, dtype):
    points, weights = X.astype(dtype), WEIGHTS.copy()
    model.fit(points, sample_weight=weights).predict(points)
    np.testing.assert_array_equal(points, X.astype(dtype))
    np.testing.assert_array_equal(weights, WEIGHTS)


def test_read_only_arrays(model):
    points, weights = X.copy(), WEIGHTS.copy()
    points.flags.writeable = weights.flags.writeable = False
    assert same(found(model, points, weights), found(model, X.copy(), WEIGHTS))


def test_arrays_mapped_from_a_file(model, tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert same(found(model, np.load(tmp_path / "x.npy", mmap_mode="r")), found(model, X))
    assert same(found(model, lf.data.open_dataset(tmp_path / "x.npy")), found(model, X))


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda x: torch.from_numpy(np.asfortranarray(x)),
        lambda x: torch.from_numpy(np.repeat(x, 2, axis=1))[:, ::2],
        lambda x: torch.from_numpy(np.repeat(x, 2, axis=0))[::2],
        lambda x: torch.from_numpy(np.concatenate([x[:3], x]))[3:],
    ],
    ids=["by columns", "every second column", "every second row", "not from the beginning"],
)
def test_tensors_of_any_memory_layout(model, laid_out):
    """Those that do not lie row by row go to the chunked engine: equal but for roundings."""
    (centers, labels, inertia), (c, a, i) = found(model, laid_out(X)), found(model, X)
    np.testing.assert_allclose(centers, c, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(labels, a)
    assert inertia == pytest.approx(i, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, pytest.param(3, marks=pytest.mark.long), 17])
def test_fewer_points_than_fit_in_a_block(model, d, dtype):
    close = 3e-6 if dtype == np.float32 else 1e-12
    model.set_params(n_clusters=1, max_iter=5)
    plainly = clone(model).set_params(engine="chunked")
    for n in (1, 2, 3, 7, 15, 17, 31, 33, 63, 65):
        points = (np.random.default_rng(n).normal(size=(n, d)) + 3).astype(dtype)
        centers, labels, inertia = found(model, points)
        plain_centers, plain, plain_inertia = found(plainly, points)
        np.testing.assert_allclose(centers, plain_centers, rtol=close)
        np.testing.assert_array_equal(labels, plain)
        assert inertia == pytest.approx(plain_inertia, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 16, 40])
def test_as_many_clusters_as_points(n):
    points = X[:n]
    fitted = lf.KMeans(n, engine="native", random_state=0).fit(points)
    assert sorted(fitted.labels_) == list(range(n))
    assert fitted.inertia_ == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(fitted.cluster_centers_[fitted.labels_], points)


def test_points_that_are_all_the_same():
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        fitted = lf.KMeans(3, engine="native", random_state=0).fit(np.full((50, 4), 1e6 / 3))
    assert fitted.inertia_ == 0
    assert set(fitted.labels_) == {0}


@pytest.mark.parametrize(
    ("dtype", "power"),
    [(np.float32, 49), (np.float32, -40), (np.float64, 495), (np.float64, -480), (np.float64, 66)],
)
def test_values_near_the_bounds_of_what_is_accepted(dtype, power):
    """Times a power of two, every number but its exponent is the same."""
    points = (X - 3).astype(dtype)
    model = lf.KMeans(6, engine="native", init=points[:6], tol=0.0, max_iter=50)
    plain = clone(model).fit(points)
    factor = dtype(2.0) ** dtype(power)
    scaled = clone(model).set_params(init=points[:6] * factor).fit(points * factor)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_array_equal(plain.cluster_centers_ * factor, scaled.cluster_centers_)
    assert plain.n_iter_ == scaled.n_iter_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_beyond_these_bounds_are_refused(dtype):
    factor = dtype(2.0) ** dtype(60 if dtype == np.float32 else 510)
    with pytest.raises(ValueError, match="squares"):
        lf.KMeans(2, engine="native").fit((X - 3).astype(dtype) * factor)


def test_a_small_spread_far_from_zero():
    """Spread 10^-30 about 0, and 10^-10 about 1: numbers that float64 holds."""
    for points in (X * 1e-30, 1 + X * 1e-10):
        model = lf.KMeans(4, init=points[:4], tol=0.0)
        ours, plain = (clone(model).set_params(engine=e).fit(points) for e in ("native", "chunked"))
        np.testing.assert_array_equal(ours.labels_, plain.labels_)
        assert ours.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
