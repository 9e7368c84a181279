"""Labels, inertia and distances against integer arithmetic, for rows of any magnitude.

Floats are integers times a power of two, so squared distances are computed without any rounding.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import lloydformer as lf

# All finite floats of these tests are multiples of 2**-220.
_BITS = 220
_to_integer = np.frompyfunc(lambda value: int(Fraction(value) * 2**_BITS), 1, 1)


def exact_squares(X, centers):
    """Return the squared distances (n, k) as integers, in units of 2**(-2 * _BITS)."""
    x, c = (_to_integer(np.asarray(a, dtype=np.float64)) for a in (X, centers))
    return np.stack([np.square(x - center).sum(axis=1) for center in c], axis=1)


def as_float(square):
    return float(Fraction(square, 4**_BITS))


def assert_nearest(labels, squares, n_features):
    """No label contradicts exact arithmetic, but for squares that float64 cannot tell apart.

    A square by differences has at most d + 3 roundings, so two of them agree to (d + 3) 2**-52.
    """
    least = squares.min(axis=1)
    found = squares[np.arange(len(squares)), labels]
    wrong = (found - least) * 2**52 > (n_features + 3) * least
    assert not wrong.any(), f"{wrong.sum()} of {len(labels)} rows, first {wrong.argmax()}"


def draw_lognormal(rng, n, d):
    return np.exp(3 * rng.normal(size=(n, d)))


def draw_far_groups(rng, n, d):
    """Groups with a small spread, up to 1e12 away from each other."""
    places = rng.normal(size=(6, d)) * 10.0 ** rng.integers(-1, 13, size=(6, 1))
    places[0] = 0
    spread = np.abs(places).max(axis=1, keepdims=True) * 2.0**-20 + 1e-3
    groups = rng.integers(6, size=n)
    return places[groups] + rng.normal(size=(n, d)) * spread[groups]


def draw_outliers(rng, n, d):
    X = rng.normal(size=(n, d)) + rng.normal(size=d) * 10.0 ** rng.integers(0, 4)
    far = rng.choice(n, size=5, replace=False)
    X[far] *= 10.0 ** rng.integers(2, 13, size=(5, 1))
    return X


def draw_grid(rng, n, d):
    """Whole numbers near 0 and 2**30, on which many rows are equally far from two centers."""
    return rng.integers(-3, 4, size=(n, d)) * 64.0 + rng.choice([0.0, 2.0**30], size=(n, 1))


DRAWS = [draw_lognormal, draw_far_groups, draw_outliers, draw_grid]
ENGINES = ["native", "chunked", "native sparse", "chunked sparse"]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_labels_are_those_of_integer_arithmetic(draw, dtype, engine, seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.choice([1, 2, 3, 7, 16, 33, 64])), int(rng.integers(2, 41))
    X = draw(rng, 150, d).astype(dtype)
    start = X[rng.choice(len(X), size=k, replace=False)]
    given = sparse.csr_matrix(X) if "sparse" in engine else X
    how = {"n_init": 1, "max_iter": 3, "tol": 0, "engine": engine.split()[0], "empty": "keep"}
    model = lf.KMeans(k, init=start, **how).fit(given)
    squares = exact_squares(X, model.cluster_centers_)
    assert_nearest(model.labels_, squares, d)
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    inertia = as_float(squares.min(axis=1).sum())
    rounding = 1e-6 if dtype == np.float32 else 1e-12
    assert model.inertia_ == pytest.approx(inertia, rel=rounding, abs=0)
    assert model.score(given) == pytest.approx(-inertia, rel=rounding, abs=0)
    # As docs/guarantees.md states it: squares above 2**-10 of |x|^2 + |c|^2 come from scores.
    true = np.sqrt(np.vectorize(as_float)(squares))
    tolerance = 2**10 * (d + 8) * np.finfo(dtype).eps
    np.testing.assert_allclose(model.transform(given), true, rtol=tolerance, atol=0)


@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_heavy_tails_get_the_labels_of_their_centers(engine):
    X = np.exp(3 * np.random.default_rng(2).normal(size=(30000, 20))).astype("f4")
    model = lf.KMeans(50, init=X[:50], n_init=1, max_iter=3, tol=0, engine=engine).fit(X)
    centers = model.cluster_centers_.astype(np.float64)
    squares = np.stack([np.square(X - c).sum(axis=1) for c in centers], axis=1)
    close = np.partition(squares, 1, axis=1)
    doubtful = close[:, 1] < close[:, 0] * (1 + 1e-13)
    np.testing.assert_array_equal(model.labels_[~doubtful], squares.argmin(axis=1)[~doubtful])
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert_nearest(model.labels_[:300], exact_squares(X[:300], centers), 20)
    assert model.inertia_ == pytest.approx(close[:, 0].sum(), rel=1e-6)


@pytest.mark.parametrize("engine", ["native", "chunked"])
@pytest.mark.parametrize("far", [3e7, 1e9, 1e12])
def test_two_groups_beside_a_far_one(engine, far):
    """Groups at 0 and 1 as before, and one around a far place whose rows are neighbours."""
    step = np.spacing(np.float32(far))
    groups = np.repeat([0.0, 1.0], 200) + np.tile([-0.1, 0.1], 200)
    X = np.concatenate([groups, far + step * np.array([-4, -3, 3, 4])]).astype("f4")[:, None]
    start = np.array([[0.0], [1.0], [X[-4, 0]], [X[-1, 0]]])
    model = lf.KMeans(4, init=start, n_init=1, engine=engine).fit(X)
    squares = exact_squares(X, model.cluster_centers_)
    assert_nearest(model.labels_, squares, 1)
    assert model.inertia_ == pytest.approx(as_float(squares.min(axis=1).sum()), rel=1e-6)
    nearest = [math.sqrt(as_float(least)) for least in squares.min(axis=1)]
    np.testing.assert_allclose(model.transform(X).min(axis=1), nearest, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_do_not_hide_the_rounding_of_the_last_centers(dtype):
    """The last labels are found with bounds of the iterations, whose centers are not rounded."""
    rng = np.random.default_rng(0)
    X = draw_far_groups(rng, 20000, 3).astype(dtype)
    model = lf.KMeans(40, init=X[:40], n_init=1, max_iter=30, tol=0).fit(X)
    rows = rng.choice(len(X), size=2000, replace=False)
    assert_nearest(model.labels_[rows], exact_squares(X[rows], model.cluster_centers_), 3)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_of_another_precision_are_compared_with_the_fitted_centers():
    rng = np.random.default_rng(1)
    X = draw_far_groups(rng, 500, 4)
    for fitted, given in [("f4", "f8"), ("f8", "f4")]:
        model = lf.KMeans(20, init=X[:20], n_init=1, max_iter=3, tol=0).fit(X.astype(fitted))
        for engine in ("native", "chunked"):
            labels = model.set_params(engine=engine).predict(X.astype(given))
            assert_nearest(labels, exact_squares(X.astype(given), model.cluster_centers_), 4)


@pytest.mark.parametrize("engine", ["native", "chunked"])
@pytest.mark.parametrize(
    "model",
    [
        lf.RelocatingKMeans(12, random_state=0),
        lf.TrimmedKMeans(12, n_init=1, random_state=0),
        lf.SoftKMeans(12, n_init=1, max_iter=5, random_state=0),
        lf.RobustKMeans(12, n_init=1, max_iter=5, random_state=0),
        lf.KMedoids(12, random_state=0),
        lf.KMeans(12, batch_size=64, n_init=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_other_estimators_end_with_the_same_assignment(model, engine):
    X = draw_far_groups(np.random.default_rng(5), 400, 3).astype(np.float32)
    model = clone(model).set_params(engine=engine).fit(X)
    squares = exact_squares(X, model.cluster_centers_)
    kept = model.labels_ >= 0  # trimmed rows have -1
    assert_nearest(model.labels_[kept], squares[kept], 3)
    assert_nearest(model.predict(X), squares, 3)
    nearest = np.sqrt(np.vectorize(as_float)(squares.min(axis=1)))
    np.testing.assert_allclose(model.distances_to_centers(X), nearest, rtol=1e-6)


@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_labels_of_a_partial_fit(engine):
    X = draw_far_groups(np.random.default_rng(6), 400, 3).astype(np.float32)
    model = lf.KMeans(12, init=X[:12], engine=engine).partial_fit(X)
    squares = exact_squares(X, model.cluster_centers_)
    assert_nearest(model.labels_, squares, 3)
    assert model.inertia_ == pytest.approx(as_float(squares.min(axis=1).sum()), rel=1e-6)
