"""A row for each row of the data: its number, its cluster, and its distance from the center."""

from typing import Any, BinaryIO

import numpy as np

from lloydformer.jobs.fit.found import Assignment

KINDS = ("csv", "parquet")
_PART = 1 << 20
"""Rows that are written together."""


def check_kind(kind: str, where: str) -> None:
    """A kind of file that labels can be written as, with what that needs."""
    if kind not in KINDS:
        raise ValueError(f"{where}: found {kind!r}; labels are written as {' or '.join(KINDS)}")
    _arrow()


def write_labels(file: BinaryIO, kind: str, assignment: Assignment) -> None:
    """`row` counts from 1, `cluster` from 0; rows left out have `outlier` 1."""
    first = _table(assignment, 0)
    if kind == "csv":
        file.write(f"{','.join(first.column_names)}\n".encode())
    with _writer(file, kind, first.schema) as writer:
        writer.write_table(first)
        for start in range(_PART, len(assignment.clusters), _PART):
            writer.write_table(_table(assignment, start))


def _writer(file: BinaryIO, kind: str, schema: Any) -> Any:
    if kind == "parquet":
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(file, schema)
    from pyarrow.csv import CSVWriter, WriteOptions

    return CSVWriter(file, schema, write_options=WriteOptions(include_header=False))


def _table(assignment: Assignment, start: int) -> Any:
    part = slice(start, start + _PART)
    clusters = assignment.clusters[part].numpy().astype(np.int32)
    columns = {
        "row": np.arange(start + 1, start + 1 + len(clusters)),
        "cluster": clusters,
        "distance": assignment.distances[part].numpy().astype(np.float32),
    }
    if assignment.left_out is not None:
        columns["outlier"] = assignment.left_out[part].numpy().astype(np.int8)
    return _arrow().table(columns)


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ValueError(
            'labels are written with pyarrow, which is missing: pip install "lloydformer[data]"'
        ) from None
    return pyarrow
