"""LearnedKMeans gives the same bits with AVX2 and AVX-512, and nearly the same without either.

Learned steps and the iterations after them turn a label that rounding decides into a shift of the
centers that can be seen. So the sums of a step must not depend on the width of the vectors.
"""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines import ENGINES, Native

# Seeds, d, k; sums of other lengths gave other labels for the first two.
PROBLEMS = [(14, 4, 50), (24, 7, 23), (3, 16, 9), (5, 2, 33)]


def is_here(name):
    try:
        Native(instruction_set=name)
    except ValueError:
        return False
    return True


def fitted(monkeypatch, name, X, k, **how):
    monkeypatch.setitem(ENGINES, "native", lambda: Native(instruction_set=name))
    return lf.LearnedKMeans(k, init=X[:k].astype(float), engine="native", **how).fit(X)


def problem(seed, d, k, dtype, n=30_000):
    rng = np.random.default_rng(seed)
    rng.integers(2, 17), rng.integers(5, 60)
    middles = rng.uniform(size=(k, d))[rng.integers(k, size=n)]
    return (middles + 0.2 * rng.normal(size=(n, d))).astype(dtype)


needs_both = pytest.mark.skipif(
    not (is_here("avx2") and is_here("avx512")), reason="this machine has not both"
)


@needs_both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("seed", "d", "k"),
    [*PROBLEMS[:2], *(pytest.param(*sizes, marks=pytest.mark.long) for sizes in PROBLEMS[2:])],
)
def test_the_width_of_vectors_changes_no_bit(monkeypatch, seed, d, k, dtype):
    X = problem(seed, d, k, dtype)
    one, two = (fitted(monkeypatch, name, X, k) for name in ("avx2", "avx512"))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


@needs_both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nor_with_weights_that_level_late(monkeypatch, dtype):
    """Weights that grow raise the largest score again and again, each time for other blocks."""
    X = problem(0, 5, 11, dtype, n=3000)
    weights = 2.0 ** (np.arange(3000) / 50) * np.random.default_rng(1).exponential(size=3000)
    found = []
    for name in ("avx2", "avx512"):
        monkeypatch.setitem(ENGINES, "native", lambda name=name: Native(instruction_set=name))
        model = lf.LearnedKMeans(
            11, init=X[:11], max_iter=0, compare_to_lloyd=False, engine="native"
        )
        found.append(model.fit(X, sample_weight=weights).cluster_centers_)
    np.testing.assert_array_equal(*found)


@pytest.mark.skipif(not is_here("avx2"), reason="this machine has no AVX2")
@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-5), ("float64", 1e-12)])
def test_without_fused_products_steps_agree_to_rounding(monkeypatch, dtype, close):
    X = problem(1, 6, 12, dtype, n=5000)
    how = {"n_steps": 3, "max_iter": 0, "compare_to_lloyd": False}
    one, two = (fitted(monkeypatch, name, X, 12, **how) for name in ("portable", "avx2"))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=close)
