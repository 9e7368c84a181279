"""`lf.Scaler`: scikit-learn's rules, its scalers as truths, inverses, files."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import lloydformer as lf
from lloydformer.data.scale_choice import ColumnSample

METHODS = ("auto", "standard", "minmax", "robust", "log", "rank", "clip", "none")
RNG = np.random.default_rng(0)
LABELS = np.arange(900) % 3
# Three segments of customers, lognormal in each column.
LOGS = np.array([[3, 1, 0], [5, 2.5, 1], [7, 4, 2.5]])[LABELS] + 0.4 * RNG.normal(size=(900, 3))
X = np.column_stack([np.exp(LOGS[:, :2]), LOGS[:, 2], RNG.standard_cauchy(900)])


class ColumnScaler(lf.Scaler):
    """scikit-learn's checks set a parameter of an old scaler in every class named `Scaler`."""


@pytest.mark.parametrize("method", METHODS)
def test_checks_of_scikit_learn(method):
    check_estimator(ColumnScaler(method), on_skip=None)


@pytest.mark.parametrize(
    ("method", "peer"),
    [("standard", StandardScaler()), ("minmax", MinMaxScaler())],
)
def test_scales_are_those_of_scikit_learn(method, peer):
    np.testing.assert_allclose(lf.Scaler(method).fit_transform(X), peer.fit_transform(X))


def test_robust_is_that_of_scikit_learn():
    odd = X[:899]  # its quartiles are values of rows in both definitions
    peer = RobustScaler(unit_variance=True).fit_transform(odd[:897])
    np.testing.assert_allclose(lf.Scaler("robust").fit_transform(odd[:897]), peer, rtol=1e-3)


def test_ranks_are_standardised_shares():
    found = lf.Scaler("rank").fit_transform(X)
    expected = ((stats.rankdata(X, axis=0) - 0.5) / 900 - 0.5) * np.sqrt(12)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_each_column_has_its_method():
    scaler = lf.Scaler().fit(X)
    assert scaler.methods_.tolist() == ["log", "log", "standard", "rank"]
    assert scaler.reasons_[0].startswith("skewed over a factor of")
    assert scaler.numbers_[0]["span"] > 100
    assert scaler.numbers_[3]["reach"] > 10


def test_lognormal_segments_are_found():
    rows = np.exp(LOGS)
    found = make_pipeline(lf.Scaler(), lf.RelocatingKMeans(3, random_state=0)).fit_predict(rows)
    assert adjusted_rand_score(LABELS, found) >= 0.99
    unscaled = lf.RelocatingKMeans(3, random_state=0).fit_predict(rows)
    assert adjusted_rand_score(LABELS, unscaled) < 0.7


NUMBERS = arrays(
    np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)),
    elements=st.floats(-1e9, 1e9, allow_subnormal=False) | st.integers(0, 3).map(float),
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(points=NUMBERS)
def test_the_inverse_returns_the_data(method, points):
    scaler = lf.Scaler(method).fit(points)
    scaled = scaler.transform(points)
    assert np.isfinite(scaled).all()
    again = scaler.inverse_transform(scaled)
    for column in np.flatnonzero(scaler.methods_ == "clip"):
        values = points[:, column]
        points[:, column] = values.clip(*ColumnSample.of(values, np.ones(len(values))).limits)
    size = np.abs(points).max(axis=0, keepdims=True)
    assert (np.abs(again - points) <= 1e-9 * (size + np.abs(points))).all()


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_numbers_of_equal_rows(method):
    weights = RNG.integers(4, size=900)
    one = lf.Scaler(method).fit(X, sample_weight=weights)
    two = lf.Scaler(method).fit(np.repeat(X, weights, axis=0))
    assert one.methods_.tolist() == two.methods_.tolist()
    np.testing.assert_allclose(one.transform(X), two.transform(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_are_ignored_and_stay(method):
    holes = np.vstack([X, np.full((5, 4), np.nan)])
    one, two = lf.Scaler(method).fit(X), lf.Scaler(method).fit(holes)
    np.testing.assert_allclose(one.transform(X), two.transform(X))
    assert np.isnan(two.transform(holes)[-5:]).all()
    assert np.isnan(two.inverse_transform(two.transform(holes))[-5:]).all()


def test_new_rows_beyond_the_fit():
    scaler = lf.Scaler("rank").fit([[0.0], [1.0], [2.0]])
    assert scaler.transform([[-9.0], [9.0]]).tolist() == scaler.transform([[0.0], [2.0]]).tolist()
    logs = lf.Scaler("log").fit([[1.0], [10.0], [100.0]])
    assert np.isfinite(logs.transform([[0.0], [-5.0]])).all()


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(900) + 7)
    scaler = lf.Scaler().set_output(transform="pandas").fit(frame)
    found = scaler.transform(frame)
    assert found.columns.tolist() == list("abcd")
    assert found.index[0] == 7
    assert scaler.get_feature_names_out().tolist() == list("abcd")
    np.testing.assert_allclose(scaler.inverse_transform(found), X, rtol=1e-8, atol=1e-8)


def test_the_precision_is_that_of_the_rows():
    scaler = lf.Scaler().fit(X)
    single = scaler.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    # A curve of ranks is steep where rows are dense: rounding is a part of a rank there.
    np.testing.assert_allclose(single, scaler.transform(X), atol=1e-3)
    assert scaler.inverse_transform(single).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_a_folder_returns_the_scaler(method, tmp_path):
    scaler = lf.Scaler(method).fit(pd.DataFrame(X, columns=list("abcd")))
    scaler.save_pretrained(tmp_path / "scaler")
    again = lf.Scaler.from_pretrained(tmp_path / "scaler")
    rows = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(again.transform(rows), scaler.transform(rows))
    assert again.methods_.tolist() == scaler.methods_.tolist()
    assert again.numbers_ == scaler.numbers_
    assert clone(again).get_params() == scaler.get_params()


def test_other_folders_are_refused(tmp_path):
    lf.KMeans(2).save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="holds no Scaler"):
        lf.Scaler.from_pretrained(tmp_path / "model")
    lf.Scaler().fit(X).save_pretrained(tmp_path / "scaler")
    path = tmp_path / "scaler" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"columns": config["columns"][:2]}))
    with pytest.raises(ValueError, match="is damaged"):
        lf.Scaler.from_pretrained(tmp_path / "scaler")


def test_bad_arguments():
    with pytest.raises(ValueError, match="method: found 'logs'; pass one of auto, standard"):
        lf.Scaler("logs").fit(X)
    with pytest.raises(ValueError, match="column 0 whose spread float64 cannot hold"):
        lf.Scaler("standard").fit([[1e308], [-1e308]])
    with pytest.raises(ValueError, match=r"X: found the shape \(1, 2\); pass rows of 4 columns"):
        lf.Scaler().fit(X).inverse_transform([[1.0, 2.0]])


def test_a_spread_that_underflows_is_no_reason_to_warn():
    """Found by hypothesis: values whose squares are below the smallest number."""
    points = np.array([[0.0, 2.7e-187], [0.0, 0.0], [1.0, 6.7e-211]])
    scaler = lf.Scaler().fit(points)
    found = scaler.inverse_transform(scaler.transform(points))
    np.testing.assert_allclose(found, points, atol=1e-200)
