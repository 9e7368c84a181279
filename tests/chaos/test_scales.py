"""Random data and weights at random scales: scaled results, or an error that names the argument."""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines import instruction_set

LARGEST = {"float32": 60, "float64": 510}
"""Exponents beyond those for which squares fit."""
SMALL = {"float32": -40, "float64": -480}
"""Exponents below which squares of small distances have fewer digits."""

MODELS = {
    "kmeans": lambda k, gamma, **how: lf.KMeans(k, **how),
    "soft": lambda k, gamma, **how: lf.SoftKMeans(k, inverse_temperature=gamma, **how),
    "trimmed": lambda k, gamma, **how: lf.TrimmedKMeans(k, keep=0.8, **how),
    "robust": lambda k, gamma, **how: lf.RobustKMeans(k, inverse_temperature=gamma / 64, **how),
    "relocating": lambda k, gamma, **how: lf.RelocatingKMeans(k, max_iter=100, **how),
    "learned": lambda k, gamma, **how: lf.LearnedKMeans(k, **how),
}


@pytest.fixture(params=["native", "chunked"])
def engine(request):
    if request.param == "native" and instruction_set() is None:
        pytest.skip("the kernels of the native engine were not built here")
    return request.param


def problem(seed):
    """Rows far from or near to zero, some of them outliers; weights of very different size."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(30, 120)), int(rng.integers(1, 6)), int(rng.integers(2, 6))
    X = rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.uniform(0, 0.4) * rng.normal(
        size=(n, d)
    )
    X *= np.where(rng.random(n) < 0.05, 30, 1)[:, None]
    X += rng.choice([0, 0, 100]) * rng.normal(size=d)
    weights = rng.exponential(size=n) * 10.0 ** -rng.uniform(0, rng.choice([0, 3, 30]), size=n)
    return rng, X, weights, k


def compare(one, two, shift, scale):
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(np.ldexp(one.cluster_centers_, shift), two.cluster_centers_)
    np.testing.assert_array_equal(np.ldexp(one.objective_history_, scale), two.objective_history_)


def fit(model, X, weights):
    """The fitted model; None if an argument was refused by its name."""
    try:
        return model.fit(X, sample_weight=weights)
    except ValueError as error:
        if str(error).startswith(("X: found values that span", "sample_weight: found weights")):
            return None
        raise


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
# The rule of `tol` is the same at every scale, so what it warns of is, too.
@pytest.mark.filterwarnings("ignore:tol ended the fit")
@pytest.mark.parametrize("dtype", LARGEST)
@pytest.mark.parametrize("name", MODELS)
def test_scales(name, dtype, engine, amount):
    refused = 0
    for seed in range(amount(2, 60)):
        rng, X, weights, k = problem(seed)
        X, most = X.astype(dtype), LARGEST[dtype]
        if name == "robust":
            weights = None  # to sparsemax another unit of weights is another problem
        how = {"random_state": seed, "engine": engine}
        one = MODELS[name](k, 1.0, **how).fit(X, sample_weight=weights)
        for shift in rng.integers(-most, most, size=3).tolist():
            weight_shift = 0 if weights is None else int(rng.integers(-900, 1000))
            with np.errstate(over="ignore", under="ignore"):
                heavy = None if weights is None else np.ldexp(weights, weight_shift)
                scaled = np.ldexp(X, shift)
            two = fit(MODELS[name](k, 2.0 ** (-2 * shift), **how), scaled, heavy)
            refused += two is None
            if two is not None and shift >= SMALL[dtype]:
                compare(one, two, shift, 2 * shift + weight_shift)
            elif two is not None:
                assert np.isfinite(two.cluster_centers_).all()
                assert np.isfinite(two.objective_history_).all()
    assert refused < 3 * amount(2, 60), "some scales are within the range"
