"""The file of labels: for each row of the data its number, cluster and distance."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import numpy as np
from torch import Tensor

from lloydformer.data.opened import OpenedTable
from lloydformer.data.spreadsheet_names import guarded
from lloydformer.jobs.fit.assignment import Assignment

KINDS = ("csv", "parquet")
_CHUNK = 1 << 20
"""Rows written at a time; bounds temporary memory."""
_TAKEN = ("row", "cluster", "distance", "outlier")
Columns = dict[str, "np.ndarray | np.ma.MaskedArray"]


def check_kind(kind: str, option: str) -> None:
    """Raise ValueError if labels cannot be written as this kind of file, or pyarrow is missing.

    `option` names the option in the message.
    """
    if kind not in KINDS:
        raise ValueError(f"{option}: found {kind!r}; labels are written as {' or '.join(KINDS)}")
    if kind == "parquet" and _arrow() is None:
        raise ValueError(
            f'{option}: Parquet files need pyarrow: pip install "lloydformer[data]"; or choose csv'
        )


def write_labels(
    file: BinaryIO, kind: str, assignment: Assignment, table: OpenedTable | None = None
) -> None:
    """Write the columns row (from 1), cluster (from 0), distance.

    If the table has a column that names its rows, that comes after `row`. Rows that were dropped
    for missing values have an empty cluster and distance. If the algorithm leaves rows out, the
    column `outlier` is 1 for those rows, else 0.
    """
    chunks = _chunks(assignment, table)
    first = next(chunks)
    with _writer(file, kind, first, texts=table is not None and table.id_column is not None) as out:
        out.write(first)
        for columns in chunks:
            out.write(columns)


def write_label_chunks(
    file: BinaryIO, kind: str, parts: Iterable[tuple[Any, Any, Any]], largest: float
) -> None:
    """The same for clusters, distances and rows left out (or None) that come in parts.

    largest: the largest distance.
    """
    chunks = _numbered(parts, _precision_of(largest))
    first = next(chunks)
    with _writer(file, kind, first, texts=False) as out:
        out.write(first)
        for columns in chunks:
            out.write(columns)


def _numbered(parts: Iterable[tuple[Any, Any, Any]], precision: Any) -> Iterator[Columns]:
    start = 0
    for clusters, distances, left_out in parts:
        rows = np.arange(start + 1, start + 1 + len(clusters))
        start += len(clusters)
        columns: Columns = {"row": rows, "cluster": np.asarray(clusters).astype(np.int32),
                            "distance": np.asarray(distances).astype(precision)}  # fmt: skip
        if left_out is not None:
            columns["outlier"] = np.asarray(left_out).astype(np.int8)
        yield columns


def _chunks(assignment: Assignment, table: OpenedTable | None) -> Iterator[Columns]:
    dropped = np.empty(0, dtype=np.int64) if table is None else table.dropped
    n_rows, precision = len(assignment.clusters) + len(dropped), _precision(assignment.distances)
    names = None if table is None or table.id_column is None else _ids(table, n_rows)
    for start in range(0, max(n_rows, 1), _CHUNK):
        count = min(_CHUNK, n_rows - start)
        first, last = np.searchsorted(dropped, (start, start + count))
        gone = np.zeros(count, dtype=bool)
        gone[dropped[first:last] - start] = True
        points = slice(start - int(first), start + count - int(last))
        columns: Columns = {"row": np.arange(start + 1, start + 1 + count)}
        if names is not None:
            assert table is not None
            columns[id_name(str(table.id_column))] = next(names)
        clusters = assignment.clusters[points].numpy().astype(np.int32)
        distances = assignment.distances[points].numpy().astype(precision)
        columns |= {"cluster": _spread(clusters, gone), "distance": _spread(distances, gone)}
        if assignment.left_out is not None:
            out = assignment.left_out[points].numpy().astype(np.int8)
            columns["outlier"] = _spread(out, gone)
        yield columns


def id_name(column: str) -> str:
    """What the column that names the rows is called in the labels.

    >>> id_name("customer"), id_name("row")
    ('customer', 'id row')
    """
    return f"id {column}" if column in _TAKEN else guarded(column)


def _spread(values: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Values with gaps where rows were dropped."""
    if not gone.any():
        return values
    found = np.ma.zeros(len(gone), dtype=values.dtype)
    found[~gone] = values
    found[gone] = np.ma.masked
    return found


def _ids(table: OpenedTable, n_rows: int) -> Iterator[np.ndarray]:
    """The names of the rows in chunks; raises ValueError if the file has changed."""
    held: list[np.ndarray] = []
    count = total = 0
    for part in table.ids():
        held.append(part)
        count, total = count + len(part), total + len(part)
        while count >= _CHUNK:
            whole = np.concatenate(held)
            held, count = [whole[_CHUNK:]], count - _CHUNK
            yield whole[:_CHUNK]
    if total != n_rows:
        raise ValueError(f"{table.source.name}: found {total:,} rows where there were {n_rows:,}; "
                         "do not change the file while it is in use")  # fmt: skip
    yield np.concatenate(held)


class _LabelWriter(Protocol):
    def write(self, columns: Columns) -> None: ...


@contextmanager
def _writer(file: BinaryIO, kind: str, first: Columns, texts: bool) -> Iterator[_LabelWriter]:
    if _arrow() is None or (kind == "csv" and texts):
        yield _PlainWriter(file, list(first))
        return
    table = _arrow_table(first)
    if kind == "parquet":
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(file, table.schema) as writer:
            yield _ArrowWriter(writer)
        return
    from pyarrow.csv import CSVWriter, WriteOptions

    file.write(f"{','.join(first)}\n".encode())
    options = WriteOptions(include_header=False)
    with CSVWriter(file, table.schema, write_options=options) as writer:
        yield _ArrowWriter(writer)


class _ArrowWriter:
    """Writes chunks with pyarrow."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def write(self, columns: Columns) -> None:
        self.writer.write_table(_arrow_table(columns))


class _PlainWriter:
    """Writes chunks as CSV, without pyarrow."""

    def __init__(self, file: BinaryIO, names: list[str]) -> None:
        self.file = file
        self._write([names])

    def write(self, columns: Columns) -> None:
        self._write(zip(*map(_as_texts, columns.values()), strict=True))

    def _write(self, rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.file.write(text.getvalue().encode())


def _as_texts(values: np.ndarray) -> list[str]:
    found = [str(value) for value in np.asarray(values)]  # the fewest digits of its precision
    for i in np.flatnonzero(np.ma.getmaskarray(values)):
        found[i] = ""
    return found


def _arrow_table(columns: Columns) -> Any:
    arrow = _arrow()
    return arrow.table({
        name: arrow.array(np.asarray(values), mask=np.ma.getmaskarray(values))
        if isinstance(values, np.ma.MaskedArray) else arrow.array(values)
        for name, values in columns.items()
    })  # fmt: skip


def _precision(distances: Tensor) -> type[np.floating[Any]]:
    return _precision_of(float(distances.max()) if len(distances) else 0.0)


def _precision_of(largest: float) -> type[np.floating[Any]]:
    """float32, or float64 for distances that float32 cannot hold."""
    return np.float32 if largest == 0 or 1e-30 < largest < 1e38 else np.float64


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow
