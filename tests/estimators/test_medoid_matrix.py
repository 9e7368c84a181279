"""KMedoids on a matrix of distances, given or computed by a callable, as scikit-learn uses it."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

import lloydformer as lf
from lloydformer.estimators import medoid_matrix

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

    def run_or_stop(session, start):
        if len(runs) == ended:
            raise KeyboardInterrupt
        runs.append(run(session, start))
        return runs[-1]

    monkeypatch.setattr(medoid_matrix, "_run", run_or_stop)
    model = lf.KMedoids(3, metric="precomputed", n_init=5, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DISTANCES)
    assert hasattr(model, "inertia_") == (ended > 0)
    if ended:
        assert model.inertia_ == min(history[-1] for _, history in runs)


def uphill(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.maximum(b - a, 0).sum())


def undefined(a: np.ndarray, b: np.ndarray) -> float:
    return float("nan")


def negative(a: np.ndarray, b: np.ndarray) -> float:
    return -chebyshev(a, b)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (uphill, "metric: uphill returned .* for rows 0 and 1.*symmetric"),
        (undefined, "metric: undefined returned nan"),
        (negative, "metric: negative returned -"),
    ],
)
def test_a_callable_that_is_no_metric_is_named(metric, words):
    with pytest.raises(ValueError, match=words):
        lf.KMedoids(2, metric=metric).fit(X)
