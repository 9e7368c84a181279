"""Columns that were not clustered are numbers, dates or words, and ids are left out."""

import numpy as np
import pandas as pd
import pytest

from lloydformer.profiles.other_columns import read_other_columns


def read_one(values, name="a"):
    columns, _ = read_other_columns({name: values}, len(values))
    return columns[0]


def test_numbers_with_missing_values():
    for values in (
        [1.0, None, 3.0, np.nan],
        pd.Series([1, None, 3, None], dtype="Int64"),
        np.ma.masked_array([1.0, 9, 3, 9], mask=[0, 1, 0, 1]),
        np.array([1.0, np.inf, 3.0, np.nan]),
    ):
        np.testing.assert_array_equal(read_one(values).values, [1, np.nan, 3, np.nan])


def test_words_booleans_and_dates():
    words = read_one(["b", None, "a", "b", "a"])
    assert (words.words, words.values.tolist()) == (("a", "b"), [1, -1, 0, 1, 0])
    categories = read_one(pd.Series(["x", "y", "x", None], dtype="category"))
    assert (categories.words, categories.values.tolist()) == (("x", "y"), [0, 1, 0, -1])
    assert read_one([True, False, True]).words == ("False", "True")
    dates = read_one(pd.to_datetime(["1970-01-03", None, "1970-01-01"]))
    np.testing.assert_array_equal(dates.values, [2, np.nan, 0])
    assert dates.format(2.0) == "1970-01-03"
    assert dates.format(np.nan) == ""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", range(30)),
        ("customer_id", np.random.default_rng(0).permutation(30) * 7),
        ("who", [f"person {i}" for i in range(30)]),
    ],
)
def test_columns_that_name_the_rows_are_left_out(name, values):
    assert read_other_columns({name: list(values)}, 30) == ((), (name,))


def test_distinct_whole_numbers_without_such_a_name_are_numbers():
    values = np.random.default_rng(0).permutation(30) * 7
    assert read_one(values, "price").words is None


def test_frames_series_and_mappings():
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "x"]})
    assert [column.name for column in read_other_columns(frame, 2)[0]] == ["a", "b"]
    assert read_other_columns(frame["a"], 2)[0][0].name == "a"
    assert read_other_columns(None, 2) == ((), ())


def test_an_arrow_table_is_read():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [1.5, None], "b": ["x", "x"]})
    columns, _ = read_other_columns(table, 2)
    assert [column.name for column in columns] == ["a", "b"]
    np.testing.assert_array_equal(columns[0].values, [1.5, np.nan])
