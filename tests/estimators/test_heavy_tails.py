"""Rows with heavy tails, and a few rows far away: float32 gives what float64 gives."""

import numpy as np
import pytest

import lloydformer as lf

DRAWS = {
    "lognormal": lambda rng: np.exp(2 * rng.normal(size=(3000, 8))),
    "pareto": lambda rng: rng.pareto(0.9, size=(3000, 8)),
    "counts": lambda rng: rng.zipf(1.7, size=(3000, 8)).clip(max=10**7).astype(float),
    "one far row": lambda rng: rng.normal(size=(3000, 8)) * ([[1e6]] + [[1.0]] * 2999),
}


@pytest.fixture(params=DRAWS)
def points(request, rng):
    return DRAWS[request.param](rng).astype(np.float32)


def test_float32_finds_as_good_centers_as_float64(points):
    single, double = (
        lf.RelocatingKMeans(20, random_state=0).fit(points.astype(dtype)) for dtype in ("f4", "f8")
    )
    at = single.cluster_centers_.astype(np.float64)
    true = np.square(points.astype(np.float64)[:, None] - at).sum(axis=-1).min(axis=1).sum()
    assert true < 1.003 * double.inertia_
    assert single.inertia_ == pytest.approx(true, rel=1e-5)


@pytest.mark.parametrize("far", [1e2, 3e7, 1e9, 1e12])
def test_a_far_row_does_not_blur_the_others(far):
    """Two groups at 0 and 1, whose rows are 0.1 away from their centers, and one row far away."""
    groups = np.repeat([0.0, 1.0], 200) + np.tile([-0.1, 0.1], 200)
    X = np.append(groups, far)[:, None].astype(np.float32)
    model = lf.KMeans(3, init=np.array([[0.0], [1.0], [far]]), n_init=1).fit(X)
    assert model.inertia_ == pytest.approx(400 * 0.01, rel=1e-5)
    np.testing.assert_allclose(model.transform(X[:-1]).min(axis=1), 0.1, rtol=1e-5)
    np.testing.assert_array_equal(model.labels_, [*np.repeat([0, 1], 200), 2])
    np.testing.assert_array_equal(model.predict(X), model.labels_)
