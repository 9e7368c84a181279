"""The file of labels: for each row of the data its number, cluster and distance."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
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


def write_labels(
    file: BinaryIO,
    kind: str,
    assignment: Assignment,
    table: OpenedTable,
    *,
    keep_columns: bool = False,
) -> None:
    """Write the columns row (from 1), cluster (from 0), distance.

    If the table has a column that names its rows, that comes after `row`, and with `keep_columns`
    all others come after it, as texts. Rows that were dropped for missing values have an empty
    cluster and distance. If the algorithm leaves rows out, the column `outlier` is 1 for those
    rows, else 0.
    """
    distances, dropped = assignment.distances, table.dropped
    n_rows, copied = len(distances) + len(dropped), name_copied_columns(table, keep_columns)
    chunk = max(1, _CHUNK // max(1, len(copied)))
    precision = _distance_dtype(float(distances.max()) if len(distances) else 0.0)

    def chunks() -> Iterator[Columns]:
        texts = _copied_texts(table, copied, n_rows, chunk)
        for start in range(0, max(n_rows, 1), chunk):
            count = min(chunk, n_rows - start)
            first, last = np.searchsorted(dropped, (start, start + count))
            gaps = np.zeros(count, dtype=bool)
            gaps[dropped[first:last] - start] = True
            points = slice(start - int(first), start + count - int(last))
            left_out = None if assignment.left_out is None else assignment.left_out[points]
            part = (assignment.clusters[points], distances[points], left_out)
            yield _label_columns(start, part, precision, gaps, next(texts))

    _write_chunks(file, kind, chunks(), has_texts=len(copied) > 0)


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

    _write_chunks(file, kind, chunks(), has_texts=False)


def id_name(column: str) -> str:
    """Return the name that the column with the names of the rows has in the labels.

    >>> id_name("customer"), id_name("row")
    ('customer', 'id row')
    """
    return f"id {column}" if column in _RESERVED else escape_formula(column)


def name_copied_columns(table: OpenedTable, keep_columns: bool) -> dict[str, int]:
    """Return the columns of the table that the labels carry, by their names in the file.

    These are the names of the rows, and with `keep_columns` all others. Every name is there once.
    """
    source, named = table.source, dict[str, int]()
    if table.id_column is not None:
        (named[id_name(table.id_column)],) = source.find([table.id_column])
    for i in range(source.width if keep_columns else 0):
        if i in named.values() or source.show(i) in source.index_columns:
            continue
        name = f"x{i + 1}" if source.names is None else source.names[i] or f"column {i + 1}"
        name = f"data {name}" if name in _RESERVED else escape_formula(name)
        named[f"{name} (column {i + 1})" if name in named else name] = i
    return named


def _label_columns(
    start: int, part: LabelPart, precision: Any, gaps: np.ndarray, copied: Columns
) -> Columns:
    """Return the columns of the file for some rows, of which `start` rows come before."""
    clusters, distances, left_out = part
    columns: Columns = {"row": np.arange(start + 1, start + 1 + len(gaps)), **copied}
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


def _copied_texts(
    table: OpenedTable, copied: dict[str, int], n_rows: int, chunk: int
) -> Iterator[Columns]:
    """Read copied columns in chunks of rows; raises ValueError if the file has changed."""
    if not copied:
        yield from repeat({})
    pending: list[list[np.ndarray]] = [[] for _ in copied]
    count = total = 0
    for part in table.texts([*copied.values()]):
        for waiting, texts in zip(pending, part, strict=True):
            waiting.append(texts)
        count, total = count + len(part[0]), total + len(part[0])
        if count >= chunk:
            whole = [np.concatenate(waiting) for waiting in pending]
            for start in range(0, count - chunk + 1, chunk):
                rows = slice(start, start + chunk)
                yield dict(zip(copied, (texts[rows] for texts in whole), strict=True))
            pending = [[texts[count - count % chunk :]] for texts in whole]
            count %= chunk
    if total != n_rows:
        raise ValueError(
            f"{table.source.name}: found {total:,} rows where there were {n_rows:,}; do not change "
            "the file while it is in use"
        )
    yield dict(zip(copied, map(np.concatenate, pending), strict=True))


def _write_chunks(file: BinaryIO, kind: str, chunks: Iterator[Columns], has_texts: bool) -> None:
    first = next(chunks)  # has the names and types of the columns
    # pyarrow quotes every text of a CSV file, and csv only where it must: texts of the data are
    # written as they were.
    if find_pyarrow() is None or (kind == "csv" and has_texts):
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
