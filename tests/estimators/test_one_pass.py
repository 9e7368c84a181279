"""Labels, inertia and distances in one pass over the rows are those of the general way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import fit_scaling
from lloydformer.engines.native import instruction_set
from lloydformer.estimators import Clusterer, base

pytestmark = pytest.mark.skipif(instruction_set() is None, reason="kernels were not built")

ESTIMATORS: dict[str, Callable[[], Clusterer]] = {
    "kmeans": lambda: lf.KMeans(5, random_state=0, max_iter=3),
    "soft": lambda: lf.SoftKMeans(5, random_state=0, max_iter=3),
    "spherical": lambda: lf.SphericalKMeans(5, random_state=0, max_iter=3),
    "trimmed": lambda: lf.TrimmedKMeans(5, random_state=0, max_iter=3),
    "robust": lambda: lf.RobustKMeans(5, random_state=0, max_iter=3),
    "medoids": lambda: lf.KMedoids(5, random_state=0, max_iter=3),
    "circuit": lambda: lf.CircuitClusterer(
        recipe=lf.recipes.spherical(), n_clusters=5, random_state=0, max_iter=3
    ),
}
ANSWERS = ("predict", "transform", "score")


def rows(n: int, d: int, dtype: Any = np.float64) -> np.ndarray:
    return (np.random.default_rng(n + d).normal(size=(n, d)) + 3).astype(dtype)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> Callable[[Clusterer, str, Any], Any]:
    """A method of a model, computed without the pass."""

    def answer(model: Clusterer, method: str, *args: Any) -> Any:
        with monkeypatch.context() as without:
            without.setattr(base, "open_one_pass", lambda *_: None)
            return getattr(model, method)(*args)

    return answer


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_as_the_general_way(name: str, dtype: Any, general: Any) -> None:
    model = ESTIMATORS[name]().fit(rows(200, 3, dtype))
    for n in (1, 33, 20_000):
        X = rows(n, 3, dtype)
        np.testing.assert_array_equal(model.predict(X), general(model, "predict", X))
        far, expected = model.transform(X), general(model, "transform", X)
        rounding = 2 * (3 + 3) * np.finfo(dtype).eps * np.square(X - X.mean(axis=0)).sum(1).max()
        np.testing.assert_allclose(far**2, expected**2, rtol=0, atol=rounding if n > 1 else 1e-5)
        assert far.dtype == dtype
        assert model.score(X) == general(model, "score", X)


@pytest.mark.parametrize("name", ["kmeans", "spherical", "trimmed"])
def test_weights(name: str, general: Any) -> None:
    X, weights = rows(300, 4), np.random.default_rng(0).uniform(0, 1e5, 300)
    model = ESTIMATORS[name]().fit(X, sample_weight=weights)
    assert model.score(X, None, weights) == general(model, "score", X, None, weights)
    assert model.score(X, None, weights) == pytest.approx(-model.inertia_, rel=1e-12)


def test_scaled_blocks_and_tensors(general: Any) -> None:
    points = torch.from_numpy(rows(500, 4)) * torch.tensor([1.0, 1e3, 1e-3, 5.0])
    blocks = TensorBlocks(points, scaling=fit_scaling(points, "standard"))
    model = ESTIMATORS["kmeans"]().fit(blocks)
    for X in (blocks, points, points.numpy(), points.float()):
        for method in ANSWERS:
            np.testing.assert_allclose(
                getattr(model, method)(X), general(model, method, X), rtol=1e-4, atol=1e-6
            )
        assert isinstance(model.predict(X), type(general(model, "predict", X)))
        assert isinstance(model.transform(X), type(general(model, "transform", X)))


def test_ties_go_to_the_lower_index() -> None:
    grid = np.array([[x, y] for x in range(-9, 10) for y in range(-9, 10)], dtype=np.float32)
    centers = np.array([[-2, 0], [2, 0], [0, 2], [0, -2]], dtype=np.float32)
    model = lf.KMeans(4, init=centers, max_iter=1).fit(centers)
    expected = ((grid[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(grid), expected)


def test_rows_that_are_centers_have_distance_0() -> None:
    X = rows(500, 17, np.float32) + 1e3
    model = lf.KMeans(20, init=X[:20], max_iter=1).fit(X[:20])
    np.testing.assert_array_equal(np.diag(model.transform(X[:20])), 0)
    assert model.score(X[:20]) == 0


@pytest.mark.parametrize("method", ANSWERS)
@pytest.mark.parametrize("name", ["kmeans", "spherical"])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value: float, name: str, method: str, general: Any) -> None:
    model = ESTIMATORS[name]().fit(rows(50, 17, np.float32))
    for n in (1, 40, 20_000):
        X = rows(n, 17, np.float32)
        X[n - 1, 16] = value
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)") as found:
            getattr(model, method)(X)
        with pytest.raises(ValueError) as expected:
            general(model, method, X)
        assert str(found.value) == str(expected.value)
        with pytest.raises(ValueError, match="X: found NaN or infinity"):
            getattr(model, method)(torch.from_numpy(X))


@pytest.mark.parametrize("method", ANSWERS)
def test_values_whose_squares_are_too_large_or_too_small(method: str) -> None:
    model = ESTIMATORS["kmeans"]().fit(rows(50, 3))
    for large in (1e155, 1e160, 1e300):
        with pytest.raises(ValueError, match="X: found values that span"):
            getattr(model, method)([[1.0, large, 1.0]])
    tiny = ESTIMATORS["kmeans"]().fit(rows(50, 3))
    tiny.cluster_centers_ *= 1e-160
    tiny._view.origin.zero_()
    with pytest.raises(ValueError, match="X: found values that span"):
        getattr(tiny, method)(rows(9, 3) * 1e-160)


@pytest.mark.parametrize("method", ANSWERS)
def test_rows_without_a_direction(method: str, general: Any) -> None:
    X = rows(100, 3)
    X[70] = 0
    strict = lf.SphericalKMeans(5, random_state=0).fit(rows(50, 3))
    with pytest.raises(ValueError, match="only zeros in row 70"):
        getattr(strict, method)(X)
    model = lf.SphericalKMeans(5, random_state=0, zero_rows="ignore").fit(rows(50, 3))
    np.testing.assert_allclose(
        getattr(model, method)(X), general(model, method, X), rtol=0, atol=1e-14
    )


def test_one_center_and_equal_centers() -> None:
    X = rows(30, 3)
    assert (lf.KMeans(1).fit(X).predict(X) == 0).all()
    model = lf.KMeans(2, init=X[:2]).fit(X)
    model.cluster_centers_ = np.repeat(X[:1], 2, axis=0)
    assert (model.predict(X) == 0).all()


def test_other_widths_and_names() -> None:
    pandas = pytest.importorskip("pandas")
    X = rows(30, 3)
    model = ESTIMATORS["kmeans"]().fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3 features"):
        model.predict(X[:, :2].copy())
    named = ESTIMATORS["kmeans"]().fit(pandas.DataFrame(X, columns=["a", "b", "c"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        named.predict(X)
    assert named.fit(X).predict(X).shape == (30,)
    assert not hasattr(named, "feature_names_in_")


def test_the_data_are_not_written_to() -> None:
    X = rows(30, 3)
    X.flags.writeable = False
    model = ESTIMATORS["kmeans"]().fit(X)
    assert model.predict(X).flags.writeable
    assert model.transform(X).shape == (30, 5)
