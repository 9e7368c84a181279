"""The file of labels: for each row of the data its number, cluster and distance."""

from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from lloydformer.jobs.fit.assignment import Assignment

KINDS = ("csv", "parquet")
_CHUNK = 1 << 20
"""Rows written at a time; bounds temporary memory."""


def check_kind(kind: str, option: str) -> None:
    """Raise ValueError if labels cannot be written as this kind of file, or pyarrow is missing.

    `option` names the option in the message.
    """
    if kind not in KINDS:
        raise ValueError(f"{option}: found {kind!r}; labels are written as {' or '.join(KINDS)}")
    _arrow()


def write_labels(file: BinaryIO, kind: str, assignment: Assignment) -> None:
    """Write the columns row (from 1), cluster (from 0), distance.

    If the algorithm leaves rows out, the column `outlier` is 1 for those rows, else 0.
    """
    precision = _precision(assignment.distances)
    first = _table(assignment, 0, precision)
    if kind == "csv":
        file.write(f"{','.join(first.column_names)}\n".encode())
    with _writer(file, kind, first.schema) as writer:
        writer.write_table(first)
        for start in range(_CHUNK, len(assignment.clusters), _CHUNK):
            writer.write_table(_table(assignment, start, precision))


def _writer(file: BinaryIO, kind: str, schema: Any) -> Any:
    if kind == "parquet":
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(file, schema)
    from pyarrow.csv import CSVWriter, WriteOptions

    return CSVWriter(file, schema, write_options=WriteOptions(include_header=False))


def _precision(distances: Tensor) -> type[np.floating[Any]]:
    """float32, or float64 for distances that float32 cannot hold."""
    largest = float(distances.max()) if len(distances) else 0.0
    return np.float32 if largest == 0 or 1e-30 < largest < 1e38 else np.float64


def _table(assignment: Assignment, start: int, precision: type[np.floating[Any]]) -> Any:
    """A chunk of rows as a pyarrow Table."""
    part = slice(start, start + _CHUNK)
    clusters = assignment.clusters[part].numpy().astype(np.int32)
    columns = {
        "row": np.arange(start + 1, start + 1 + len(clusters)),
        "cluster": clusters,
        "distance": assignment.distances[part].numpy().astype(precision),
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
