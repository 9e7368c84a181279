"""KMedoids on a matrix of distances, given or computed by a callable, as scikit-learn uses it."""

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

import lloydformer as lf
from lloydformer.estimators import medoid_matrix
from lloydformer.plans import medoid_search
from lloydformer.plans.medoid_search import KernelSearch

X = np.random.default_rng(0).normal(size=(30, 3))
DISTANCES = pairwise_distances(X)


def chebyshev(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.parametrize(("metric", "data"), [("precomputed", DISTANCES), (chebyshev, X)])
def test_predict_and_score_when_transform_returns_a_frame(metric, data):
    pytest.importorskip("pandas")
    plain = lf.KMedoids(3, metric=metric, random_state=0).fit(data)
    framed = lf.KMedoids(3, metric=metric, random_state=0).set_output(transform="pandas").fit(data)
    np.testing.assert_array_equal(framed.predict(data), plain.labels_)
    assert framed.score(data) == plain.score(data) == pytest.approx(-plain.inertia_)
    assert framed.transform(data).shape == (30, 3)


def test_the_weights_of_a_score_are_checked():
    model = lf.KMedoids(3, metric="precomputed", random_state=0).fit(DISTANCES)
    twice = model.score(DISTANCES, sample_weight=np.full(30, 2.0))
    assert twice == pytest.approx(2 * model.score(DISTANCES))
    with pytest.raises(ValueError, match="sample_weight: found the negative weight"):
        model.score(DISTANCES, sample_weight=np.r_[-1.0, np.ones(29)])


def test_a_grid_search_splits_rows_and_columns():
    model = lf.KMedoids(metric="precomputed", random_state=0)
    search = GridSearchCV(model, {"n_clusters": [2, 3]}, cv=3)
    search.fit(DISTANCES)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"n_clusters": 3}
    assert not get_tags(lf.KMedoids()).input_tags.pairwise


def test_a_diagonal_that_is_not_zero_is_refused():
    with pytest.raises(ValueError, match=r"distance 1.0 of row 0 to itself"):
        lf.KMedoids(2, metric="precomputed").fit(np.ones((4, 4)))


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="device: found 'abacus'"):
        lf.KMedoids(2, metric="precomputed", device="abacus").fit(DISTANCES)


@pytest.mark.parametrize("ended", [0, 2])
def test_ctrl_c_keeps_the_best_start_so_far(monkeypatch, ended):
    run, runs = medoid_matrix._run, []

    def run_or_stop(session, start, found):
        if len(runs) == ended:
            raise KeyboardInterrupt
        run(session, start, found)
        runs.append(found[-1])

    monkeypatch.setattr(medoid_matrix, "_run", run_or_stop)
    model = lf.KMedoids(3, metric="precomputed", n_init=5, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DISTANCES)
    assert hasattr(model, "inertia_") == (ended > 0)
    if ended:
        assert model.inertia_ == min(history[-1] for _, history in runs)


def test_ctrl_c_within_a_start_keeps_its_medoids(monkeypatch):
    run, calls = KernelSearch._run, []

    def run_or_stop(self, name, **arguments):
        calls.append(name)
        if calls.count("sweep") == 2:
            raise KeyboardInterrupt
        return run(self, name, **arguments)

    points = np.random.default_rng(1).normal(size=(300, 3))
    distances = pairwise_distances(points)
    monkeypatch.setattr(medoid_search, "CALL", 1)
    monkeypatch.setattr(KernelSearch, "_run", run_or_stop)
    model = lf.KMedoids(3, metric="precomputed", init=[0, 1, 2])
    with pytest.raises(KeyboardInterrupt):
        model.fit(distances)
    reached = distances[:, model.medoid_indices_].min(axis=1).sum()
    assert model.inertia_ == pytest.approx(reached)
    assert model.inertia_ < distances[:, [0, 1, 2]].min(axis=1).sum()


def alike(value: float, dtype: type) -> np.ndarray:
    return np.where(np.eye(6), 0, value).astype(dtype)


TOO_LARGE = [
    alike(np.finfo(np.float32).max, np.float32),
    alike(1e307, np.float64),
    alike(np.inf, np.float64),
    alike(np.nan, np.float64),
]


@pytest.mark.parametrize("distances", TOO_LARGE)
def test_distances_whose_sums_overflow_are_refused(distances):
    words = r"X: found the distance (3.4\d*e\+38|1e\+307|inf|nan) of rows 0 and 1; .* at most"
    with pytest.raises(ValueError, match=words):
        lf.KMedoids(2, metric="precomputed", random_state=0).fit(distances)
    model = lf.KMedoids(2, metric="precomputed", random_state=0).fit(alike(1, distances.dtype))
    with pytest.raises(ValueError, match=words):
        model.predict(distances)


@pytest.mark.parametrize("engine", ["native", "chunked"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_the_largest_distances_give_the_loss_of_the_medoids(n_clusters, dtype, engine):
    largest = 0.99 * min(np.finfo(dtype).max / 4, np.finfo(float).max / (64 * 6))
    distances = alike(largest, dtype)
    model = lf.KMedoids(n_clusters, metric="precomputed", random_state=0, engine=engine)
    model.fit(distances)
    assert model.inertia_ == pytest.approx((6 - n_clusters) * float(distances[0, 1]))
    assert set(model.labels_) == set(range(n_clusters))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("metric", "data"), [("precomputed", DISTANCES), (chebyshev, X)])
def test_tensors_come_back(metric, data, dtype):
    rows = torch.from_numpy(data).to(dtype)
    model = lf.KMedoids(3, metric=metric, random_state=0).fit(rows)
    arrays = lf.KMedoids(3, metric=metric, random_state=0).fit(rows.to(torch.float64).numpy())
    found = {
        "centers": model.cluster_centers_,
        "labels": model.labels_,
        "rows": model.medoid_indices_,
        "predict": model.predict(rows),
        "transform": model.transform(rows),
        "own": model.distances_to_centers(rows, model.labels_),
    }
    assert all(isinstance(each, torch.Tensor) for each in found.values())
    halves = dtype in (torch.bfloat16, torch.float16)
    assert model.cluster_centers_.dtype == (torch.float32 if halves else dtype)
    np.testing.assert_array_equal(found["rows"], arrays.medoid_indices_)
    np.testing.assert_array_equal(found["predict"], found["labels"])
    assert torch.equal(found["transform"].min(dim=1).values, found["own"])
    assert -model.score(rows) == pytest.approx(model.inertia_, rel=1e-6)


def test_a_matrix_to_read_only_is_read_without_a_warning():
    distances = DISTANCES.copy()
    distances.flags.writeable = False
    model = lf.KMedoids(3, metric="precomputed", random_state=0).fit(distances)
    np.testing.assert_array_equal(model.predict(distances), model.labels_)


def test_too_few_rows_with_weight():
    weights = np.r_[np.zeros(28), 1.0, 1.0]
    model = lf.KMedoids(3, metric="precomputed")
    with pytest.raises(ValueError, match=r"n_samples=2 .* n_clusters=3\. Rows of weight 0 do not"):
        model.fit(DISTANCES, sample_weight=weights)
    with pytest.raises(ValueError, match=r"n_samples=2 should be >= n_clusters=3\.$"):
        model.fit(DISTANCES[:2, :2])


@pytest.mark.parametrize(
    ("algorithm", "n", "starts"),
    [("relocate", 256, 10), ("relocate", 257, 1), ("fasterpam", 20, 1)],
)
def test_few_rows_get_ten_starts(monkeypatch, algorithm, n, starts):
    run, runs = medoid_matrix._run, []

    def counted(session, start, found):
        runs.append(start)
        run(session, start, found)

    monkeypatch.setattr(medoid_matrix, "_run", counted)
    distances = pairwise_distances(np.arange(n)[:, None])
    lf.KMedoids(3, method=algorithm, metric="precomputed", random_state=0).fit(distances)
    assert len(runs) == starts


def uphill(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.maximum(b - a, 0).sum())


def undefined(a: np.ndarray, b: np.ndarray) -> float:
    return float("nan")


def negative(a: np.ndarray, b: np.ndarray) -> float:
    return -chebyshev(a, b)


def infinite(a: np.ndarray, b: np.ndarray) -> float:
    return 0.0 if (a == b).all() else float("inf")


def word(a: np.ndarray, b: np.ndarray) -> str:
    return "far"


def nothing(a: np.ndarray, b: np.ndarray) -> None:
    return None


def vector(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b)


def shifted(a: np.ndarray, b: np.ndarray) -> float:
    return 1 + chebyshev(a, b)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (uphill, "metric: uphill returned .* for rows 0 and 1.*symmetric"),
        (undefined, "metric: undefined returned nan"),
        (negative, "metric: negative returned -"),
        (infinite, "metric: infinite returned inf as the distance of rows 0 and 1; .* finite"),
        (word, "metric: word returned 'far'; pass a function that returns one number"),
        (nothing, "metric: nothing returned None; pass a function that returns one number"),
        (vector, r"metric: vector returned array\(.*; pass a function that returns one number"),
        (shifted, "metric: shifted returned 1.0 as the distance of row 0 to itself"),
    ],
)
def test_a_callable_that_is_no_metric_is_named(metric, words):
    with pytest.raises(ValueError, match=words):
        lf.KMedoids(2, metric=metric).fit(X)
