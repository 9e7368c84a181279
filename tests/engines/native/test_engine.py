"""The smallest and the largest number of each column, and whether all numbers are finite."""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines.native import instruction_set
from lloydformer.engines.native.engine import column_ends
from lloydformer.engines.native.installed import kernels

pytestmark = pytest.mark.skipif(instruction_set() is None, reason="kernels were not built")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_as_numpy(dtype, rng):
    for n in (1, 2, 15, 16, 17, 100, 4097):
        for d in (1, 2, 3, 15, 16, 17, 40):
            X = rng.normal(size=(n, d)).astype(dtype) * 10.0 ** rng.integers(-5, 5, size=d)
            X = X.astype(dtype)
            expected = np.stack([X.min(axis=0), X.max(axis=0)])
            for n_threads in (1, 2, 5):
                found = np.empty((2, d), dtype)
                assert kernels().column_ends(X, found, n_threads)
                np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(column_ends(X), expected)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_number_that_is_not_finite(dtype, value, rng):
    X = rng.normal(size=(70, 3)).astype(dtype)
    X[0] = np.finfo(dtype).max, np.finfo(dtype).min, np.finfo(dtype).tiny
    for at in range(X.size):
        broken = X.copy()
        broken.flat[at] = value
        assert column_ends(broken) is None
    np.testing.assert_array_equal(column_ends(X), np.stack([X.min(axis=0), X.max(axis=0)]))


def test_wrong_arrays():
    with pytest.raises(ValueError, match="out: pass"):
        kernels().column_ends(np.zeros((3, 2)), np.zeros((2, 3)), 1)
    with pytest.raises(ValueError, match="points: pass float32 or float64"):
        kernels().column_ends(np.zeros((3, 2), np.int32), np.zeros((2, 2), np.int32), 1)


@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_a_fit_says_what_is_not_finite(engine, rng):
    X = rng.normal(size=(50, 3))
    X[40, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        lf.KMeans(2, engine=engine).fit(X)
    X[40, 1] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        lf.KMeans(2, engine=engine).fit(X)
