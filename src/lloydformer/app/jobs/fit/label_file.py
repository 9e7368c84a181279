"""The file of labels: for each row of the data its number, cluster and distance."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from lloydformer.data.csv_format import escape_formula
from lloydformer.data.sources import OpenedTable
from lloydformer.data.typed_tables import find_pyarrow
from lloydformer.profiles.assignment import Assignment

KINDS = ("csv", "parquet")
# Rows written at a time; bounds temporary memory.
_CHUNK = 1 << 20
# Columns that the file has itself; a column of the data with such a name is renamed.
_RESERVED = ("row", "cluster", "distance", "outlier")
Columns = dict[str, "np.ndarray | np.ma.MaskedArray"]
# Clusters, distances, and rows left out (or None), as arrays or tensors.
LabelPart = tuple[Any, Any, Any]


def check_kind(kind: str, option: str) -> None:
    """Raise ValueError if labels cannot be written as this kind of file, or pyarrow is missing.

    `option` names the option in the message.
    """
    if kind not in KINDS:
        raise ValueError(f"{option}: found {kind!r}; labels are written as {' or '.join(KINDS)}")
    if kind == "parquet" and find_pyarrow() is None:
        raise ValueError(
            f'{option}: Parquet files need pyarrow: pip install "lloydformer[data]"; or choose csv'
        )


def write_labels(file: BinaryIO, kind: str, assignment: Assignment, table: OpenedTable) -> None:
    """Write the columns row (from 1), cluster (from 0), distance.

    If the table has a column that names its rows, that comes after `row`. Rows that were dropped
    for missing values have an empty cluster and distance. If the algorithm leaves rows out, the
    column `outlier` is 1 for those rows, else 0.
    """
    distances, dropped = assignment.distances, table.dropped
    n_rows, has_ids = len(distances) + len(dropped), table.id_column is not None
    precision = _distance_dtype(float(distances.max()) if len(distances) else 0.0)

    def chunks() -> Iterator[Columns]:
        names = _row_names(table, n_rows) if has_ids else None
        for start in range(0, max(n_rows, 1), _CHUNK):
            count = min(_CHUNK, n_rows - start)
            first, last = np.searchsorted(dropped, (start, start + count))
            gaps = np.zeros(count, dtype=bool)
            gaps[dropped[first:last] - start] = True
            points = slice(start - int(first), start + count - int(last))
            ids = {} if names is None else {id_name(str(table.id_column)): next(names)}
            left_out = None if assignment.left_out is None else assignment.left_out[points]
            part = (assignment.clusters[points], distances[points], left_out)
            yield _label_columns(start, part, precision, gaps, ids)

    _write_chunks(file, kind, chunks(), has_ids)


def write_label_chunks(
    file: BinaryIO, kind: str, parts: Iterable[LabelPart], largest: float
) -> None:
    """Write labels that come in parts; `largest` is the largest distance."""
    precision = _distance_dtype(largest)

    def chunks() -> Iterator[Columns]:
        start = 0
        for part in parts:
            gaps = np.zeros(len(part[0]), dtype=bool)
            yield _label_columns(start, part, precision, gaps, {})
            start += len(gaps)

    _write_chunks(file, kind, chunks(), has_ids=False)


def id_name(column: str) -> str:
    """Return the name that the column with the names of the rows has in the labels.

    >>> id_name("customer"), id_name("row")
    ('customer', 'id row')
    """
    return f"id {column}" if column in _RESERVED else escape_formula(column)


def _label_columns(
    start: int, part: LabelPart, precision: Any, gaps: np.ndarray, ids: Columns
) -> Columns:
    """Return the columns of the file for some rows, of which `start` rows come before."""
    clusters, distances, left_out = part
    columns: Columns = {"row": np.arange(start + 1, start + 1 + len(gaps)), **ids}
    columns["cluster"] = _insert_gaps(np.asarray(clusters).astype(np.int32), gaps)
    columns["distance"] = _insert_gaps(np.asarray(distances).astype(precision), gaps)
    if left_out is not None:
        columns["outlier"] = _insert_gaps(np.asarray(left_out).astype(np.int8), gaps)
    return columns


def _insert_gaps(values: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Return values with masked entries where rows were dropped."""
    if not gaps.any():
        return values
    spread = np.ma.zeros(len(gaps), dtype=values.dtype)
    spread[~gaps] = values
    spread[gaps] = np.ma.masked
    return spread


def _row_names(table: OpenedTable, n_rows: int) -> Iterator[np.ndarray]:
    """Read the names of the rows in chunks; raises ValueError if the file has changed."""
    pending: list[np.ndarray] = []
    count = total = 0
    for part in table.ids():
        pending.append(part)
        count, total = count + len(part), total + len(part)
        while count >= _CHUNK:
            whole = np.concatenate(pending)
            pending, count = [whole[_CHUNK:]], count - _CHUNK
            yield whole[:_CHUNK]
    if total != n_rows:
        raise ValueError(
            f"{table.source.name}: found {total:,} rows where there were {n_rows:,}; do not change "
            "the file while it is in use"
        )
    yield np.concatenate(pending)


def _write_chunks(file: BinaryIO, kind: str, chunks: Iterator[Columns], has_ids: bool) -> None:
    first = next(chunks)  # has the names and types of the columns
    # pyarrow quotes every text of a CSV file, and csv only where it must: names of rows are
    # written as they were.
    if find_pyarrow() is None or (kind == "csv" and has_ids):
        _write_rows(file, [list(first)])
        for columns in chain([first], chunks):
            _write_rows(file, zip(*map(_texts, columns.values()), strict=True))
        return
    schema = _arrow_table(first).schema
    if kind == "parquet":
        from pyarrow.parquet import ParquetWriter

        writer = ParquetWriter(file, schema)
    else:
        from pyarrow.csv import CSVWriter, WriteOptions

        file.write(f"{','.join(first)}\n".encode())  # pyarrow would quote the names
        writer = CSVWriter(file, schema, write_options=WriteOptions(include_header=False))
    with writer:
        for columns in chain([first], chunks):
            writer.write_table(_arrow_table(columns))


def _write_rows(file: BinaryIO, rows: Iterable[Iterable[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def _texts(values: np.ndarray) -> list[str]:
    texts = [str(value) for value in np.asarray(values)]  # the fewest digits of its precision
    for i in np.flatnonzero(np.ma.getmaskarray(values)):
        texts[i] = ""
    return texts


def _arrow_table(columns: Columns) -> Any:
    arrow, arrays = find_pyarrow(), dict[str, Any]()
    for name, values in columns.items():
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        arrays[name] = arrow.array(np.asarray(values), mask=mask)
    return arrow.table(arrays)


def _distance_dtype(largest: float) -> type[np.floating[Any]]:
    """Return float32, or float64 for distances that float32 cannot hold."""
    # float32 ends at 3e38, and loses digits below 1e-38: with a largest distance above 1e-30, those
    # of 1e-8 of it still have all their digits.
    return np.float32 if largest == 0 or 1e-30 < largest < 1e38 else np.float64
