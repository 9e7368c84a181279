"""Tables in memory and in many files: names and values are kept."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import lloydformer as lf

X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 100.0] + 5


def test_fifty_parquet_files_give_the_same_model_as_one_array(tmp_path):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(20_000, 4)).astype(np.float32)
    ends = np.sort(rng.choice(np.arange(1, 20_000), size=49, replace=False))
    for number, part in enumerate(np.split(points, ends)):
        frame = pd.DataFrame(part, columns=list("abcd"))
        frame.to_parquet(
            tmp_path / f"{number:02}.parquet", row_group_size=int(rng.integers(1, 300))
        )
    one = lf.KMeans(6, random_state=0, max_iter=20).fit(lf.data.open_dataset(tmp_path))
    other = lf.KMeans(6, random_state=0, max_iter=20).fit(points)
    assert len(list(tmp_path.iterdir())) == 50
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert list(one.feature_names_in_) == list("abcd")


def frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return {"pandas": frame, "arrow": pa.Table.from_pandas(frame)}


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_tables_in_memory_keep_their_names(kind):
    table = frames()[kind]
    blocks = lf.data.open_dataset(table, columns=["c", "a"])
    np.testing.assert_array_equal(blocks.points, X[:, [2, 0]])
    assert blocks.names == ("c", "a")
    with pytest.raises(ValueError, match="'z'; there are a, b, c"):
        lf.data.open_dataset(table, columns=["z"])


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_bad_tables_in_memory_are_refused(kind):
    table = frames()["pandas"].assign(word="x")
    table.loc[7, "b"] = np.nan
    if kind == "arrow":
        table = pa.Table.from_pandas(table)
    with pytest.raises(ValueError, match="source: word is not numeric"):
        lf.data.open_dataset(table)
    with pytest.raises(ValueError, match=r"row 8, column b: found a missing value"):
        lf.data.open_dataset(table, columns=["b"])


def test_frames_without_names_in_float32():
    blocks = lf.data.open_dataset(pd.DataFrame(X[:9].astype(np.float32)), columns=["2"])
    assert blocks.names is None
    assert blocks.points.dtype == torch.float32
    np.testing.assert_array_equal(blocks.points, X[:9, [1]].astype(np.float32))


def test_arrays_are_checked_and_columns_chosen():
    np.testing.assert_array_equal(lf.data.open_dataset(X[:5], columns=["3"]).points, X[:5, [2]])
    with pytest.raises(ValueError, match="source: row 2, column number 1: found a missing value"):
        lf.data.open_dataset(np.array([[1.0], [np.nan]]))
    with pytest.raises(ValueError, match="source: found list; pass a path"):
        lf.data.open_dataset([[1.0]])


@pytest.mark.parametrize("kind", ["file", "arrow"])
def test_the_index_of_pandas_is_not_a_column(tmp_path, kind):
    """The index of a filtered frame is stored in Parquet, as row numbers."""
    some = frames()["pandas"].iloc[[3, 5, 40]]
    some.to_parquet(tmp_path / "p.parquet")
    source = tmp_path / "p.parquet" if kind == "file" else pa.Table.from_pandas(some)
    blocks = lf.data.open_dataset(source)
    assert blocks.names == ("a", "b", "c")
    np.testing.assert_array_equal(blocks.points, X[[3, 5, 40]])
    assert lf.data.open_dataset(source, columns=["__index_level_0__"]).points.tolist() == [
        [3],
        [5],
        [40],
    ]


def test_large_integers_are_rounded_beside_missing_values_too():
    table = pa.table({"a": [2**60 + 1, None, 3], "b": [True, False, True]})
    assert lf.data.open_dataset(table, missing="drop").points.tolist() == [
        [2.0**60, 1.0],
        [3.0, 1.0],
    ]
