"""lf.data.open_dataset takes every object with an Arrow stream, as data frames of polars are."""

import numpy as np
import pytest

import lloydformer as lf

pa = pytest.importorskip("pyarrow")


class Frame:
    """A table of another package: all that is known of it is its Arrow stream."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


TABLE = pa.table({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6], "name": ["x", "y", "z"]})


def test_columns_of_a_stream():
    blocks = lf.data.open_dataset(Frame(TABLE), columns=["b", "a"])
    assert blocks.names == ("b", "a")
    assert np.array_equal(blocks.points.numpy(), [[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]])


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    blocks = lf.data.open_dataset(polars.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    assert np.array_equal(blocks.points.numpy(), [[1.0, 3.0], [2.0, 4.0]])


def test_text_is_refused_by_name():
    with pytest.raises(ValueError, match="source: name is not numeric"):
        lf.data.open_dataset(Frame(TABLE))


def test_a_stream_that_is_no_table():
    class Numbers:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([[1, 2]]).__arrow_c_stream__(requested_schema)

    with pytest.raises(
        ValueError, match="source: found Numbers, whose Arrow stream is not a table"
    ):
        lf.data.open_dataset(Numbers())
