"""Dates, words, masked values and lazy frames: refused with the column and the repair."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import lloydformer as lf
from lloydformer.estimators import Clusterer

DAYS = pd.date_range("2024-03-01", periods=6)
NUMBERS = np.arange(6.0)


def frames_with(column: str, values: object) -> list[object]:
    """The same two columns in each library that is installed."""
    found: list[object] = [pd.DataFrame({"a": NUMBERS, column: values})]
    found.append(pa.table({"a": NUMBERS, column: pa.array(values, from_pandas=True)}))
    try:
        import polars
    except ImportError:  # not needed by anything else
        return found
    return [*found, polars.DataFrame({"a": NUMBERS, column: polars.Series(list(values))})]


def refusal(X: object, model: Clusterer | None = None) -> str:
    with pytest.raises(ValueError, match=r"^X: ") as caught:
        (lf.KMeans(2) if model is None else model).fit(X)
    return str(caught.value)


@pytest.mark.parametrize("values", [DAYS, DAYS - DAYS[0], DAYS.date], ids=["time", "span", "date"])
@pytest.mark.parametrize("others", [True, False], ids=["among numbers", "alone"])
def test_dates_are_refused_alike_in_every_library(values, others):
    """scikit-learn takes those of Arrow and polars as microseconds, without a word."""
    for frame in frames_with("day", values):
        if not others:
            frame = frame[["day"]] if isinstance(frame, pd.DataFrame) else frame.select(["day"])
        words = refusal(frame)
        assert "column 'day' has dates or times" in words
        assert "convert it to numbers" in words
    model = lf.KMeans(2).fit(pd.DataFrame({"a": NUMBERS, "day": NUMBERS}))
    for frame in frames_with("day", values):
        with pytest.raises(ValueError, match="column 'day' has dates"):
            model.predict(frame)


def test_arrays_of_dates_are_refused():
    words = refusal(DAYS.to_numpy()[:, None])
    assert "found dates or times (datetime64" in words
    assert "np.timedelta64(1, 'D')" in words
    assert "found dates or times (timedelta64" in refusal((DAYS - DAYS[0]).to_numpy()[:, None])


def test_words_are_refused_with_column_row_and_repair():
    for frame in frames_with("city", ["1", "2.5", "Rome", "4", "Oslo", "6"]):
        words = refusal(frame)
        assert words == (
            "X: column 'city' is not numeric (row 2: 'Rome'); leave it out, or make columns of 0 "
            "and 1 of its words with lf.data.open_dataset(X, one_hot=('city',))"
        )
    assert lf.KMeans(2).fit(lf.data.open_dataset(frame, one_hot=("city",))).n_features_in_ == 7
    for rows in ([["1", "x"]] * 3, np.array([["1", "x"]] * 3), pd.DataFrame([["1", "x"]] * 3)):
        assert "column 1 is not numeric (row 0: 'x'); leave it out" in refusal(rows)
    categories = pd.DataFrame({"a": NUMBERS, "city": pd.Categorical(["x"] * 6)})
    assert "column 'city' is not numeric (row 0: 'x')" in refusal(categories)
    lists = pd.DataFrame({"a": NUMBERS, "parts": [[1, 2]] * 6})
    assert "column 'parts' is not numeric (row 0: [1, 2]); leave it out" in refusal(lists)
    long = pd.DataFrame({"text": ["word " * 100] * 6})
    assert len(refusal(long)) < 300


def test_numbers_that_are_texts_stay_numbers():
    """As in scikit-learn."""
    for frame in frames_with("b", [str(value) for value in NUMBERS]):
        assert lf.KMeans(2, random_state=0).fit(frame).inertia_ > 0


@pytest.mark.parametrize("make", [lf.KMeans, lf.KMedoids, lf.SoftKMeans, lf.RelocatingKMeans])
def test_masked_values_are_refused(make):
    rows = np.ma.masked_equal(NUMBERS.reshape(3, 2), 3.0)
    words = refusal(rows, make(2))
    assert words.startswith("X: found 1 masked value, the first in row 1, column 1; ")
    assert "X[~np.ma.getmaskarray(X).any(axis=1)]" in words
    model = make(2, random_state=0).fit(rows[~rows.mask.any(axis=1)])
    for use in (model.predict, model.transform, model.score, model.distances_to_centers):
        with pytest.raises(ValueError, match=r"X: found 1 masked value"):
            use(rows)


def test_an_array_whose_mask_hides_nothing_is_an_array():
    rows = np.ma.array(NUMBERS.reshape(3, 2))
    plain = lf.KMeans(2, random_state=0).fit(rows.data)
    np.testing.assert_array_equal(lf.KMeans(2, random_state=0).fit(rows).labels_, plain.labels_)


def test_masked_weights_and_centers_are_refused():
    X, hidden = NUMBERS[:, None], np.ma.masked_equal(NUMBERS, 2.0)
    centers = np.ma.masked_equal([[2.0], [4.0]], 2.0)
    for model, given, argument in (
        (lf.KMeans(2), {"sample_weight": hidden}, "sample_weight"),
        (lf.KMeans(2, init=centers), {}, "init"),
        (lf.KMeans(2, reference_centers=centers), {}, "reference_centers"),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}: found 1 masked value, the first"):
            model.fit(X, **given)
    with pytest.raises(ValueError, match=r"^points: found 1 masked value, .* at \(0, 2, 0\)"):
        lf.fit_batch(hidden[None, :, None], 2)
    matrix = np.ma.masked_equal(np.abs(NUMBERS - X), 2.0)
    with pytest.raises(ValueError, match=r"^X: found 8 masked values, the first in row 0"):
        lf.KMedoids(2, metric="precomputed").fit(matrix)


def test_a_table_keeps_its_mask_as_missing_values():
    rows = np.ma.masked_equal([[0, 1], [2, 3], [4, 5], [6, 7]], 3)
    with pytest.raises(ValueError, match="row 2, column number 2: found a missing value"):
        lf.data.open_dataset(rows)
    assert lf.data.open_dataset(rows, missing="drop").n_rows == 3
    np.testing.assert_array_equal(
        lf.data.open_dataset(rows, missing="median").points[:, 1], [1, 5, 5, 7]
    )
    narrow = np.ma.masked_equal(np.array([[1.0], [2.0]], dtype=np.float32), 2.0)
    assert lf.data.open_dataset(narrow, missing="drop").points.dtype == torch.float32


class LazyFrame:
    """A frame of polars or narwhals whose rows are not computed yet."""

    def collect(self):
        raise AssertionError("it may take hours: the user decides")


def lazy_frames() -> list[object]:
    try:
        import polars
    except ImportError:  # not needed by anything else
        return [LazyFrame()]
    return [LazyFrame(), polars.DataFrame({"a": NUMBERS}).lazy()]


@pytest.mark.parametrize("lazy", lazy_frames(), ids=lambda lazy: type(lazy).__module__)
def test_lazy_frames_are_refused_with_the_repair(lazy):
    assert "found a LazyFrame, whose rows are not computed yet; pass X.collect()" in refusal(lazy)
    with pytest.raises(ValueError, match=r"source: found a LazyFrame.*pass source\.collect\(\)"):
        lf.data.open_dataset(lazy)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_tensors_of_integers_are_numbers(dtype):
    """As arrays of integers are, in scikit-learn and here."""
    whole = torch.tensor([[0, 1], [1, 1], [9, 8], [8, 9]]).to(dtype)
    model = lf.KMeans(2, random_state=0).fit(whole)
    same = lf.KMeans(2, random_state=0).fit(whole.numpy())
    assert model.cluster_centers_.dtype == torch.float64
    np.testing.assert_array_equal(model.cluster_centers_, same.cluster_centers_)
    for use in ("predict", "transform", "score", "distances_to_centers"):
        np.testing.assert_array_equal(getattr(model, use)(whole), getattr(same, use)(whole.numpy()))
    np.testing.assert_array_equal(
        lf.KMedoids(2, random_state=0).fit(whole).medoid_indices_,
        lf.KMedoids(2, random_state=0).fit(whole.numpy()).medoid_indices_,
    )
    with pytest.raises(ValueError, match="complex"):
        lf.KMeans(2).fit(torch.ones(4, 2, dtype=torch.complex64))


def test_dates_of_objects_are_named():
    frame = pd.DataFrame({"a": NUMBERS, "day": pd.Series([datetime.date(2024, 1, 1)] * 6)})
    assert "column 'day' has dates or times" in refusal(frame)
