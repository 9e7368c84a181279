"""CSV files, Parquet files and pyarrow tables as tables of points."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.csv_errors import MISSING_VALUES, first_error
from lloydformer.data.csv_header import CsvHeader, delimiter_of, read_header
from lloydformer.data.scratch import concatenate

_BLOCK = 1 << 24
"""Bytes of a CSV file that are parsed at a time, unless it has many columns."""


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns if it has names."""

    points: np.ndarray
    names: tuple[str, ...] | None


class ColumnFinder:
    """Finds columns by name, or by number from 1 if there are no names.

    Parameters
    ----------
    path : Path or str
        Named in errors.
    names : sequence of str or None
        Names of all columns.
    count : int
        Number of columns.
    """

    def __init__(self, path: Path | str, names: Sequence[str] | None, count: int) -> None:
        self.path, self.names, self.count = path, names, count
        self._index = {name: i for i, name in reversed(list(enumerate(names or ())))}

    def indices(self, columns: Sequence[str] | None) -> Sequence[int]:
        """Return the index of each column; None, or an empty sequence, stands for all."""
        return [self._find(c) for c in columns] if columns else range(self.count)

    def _find(self, column: str) -> int:
        if column in self._index:
            return self._index[column]
        number = int(column) if re.fullmatch(r"\d{1,18}", column, re.ASCII) else 0
        if not self.names and 1 <= number <= self.count:
            return number - 1
        known = shortened(self.names) if self.names else f"1 to {self.count}"
        raise ValueError(f"{self.path}: columns: found {column!r}; there are {known}")


def shortened(names: Sequence[str], most: int = 20) -> str:
    """List names for an error message: the first ones, and how many there are.

    >>> shortened(["a", "b", "c"]), shortened(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b and 1 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def import_pyarrow() -> Any:
    """Import pyarrow with its readers; raises `ValueError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            'CSV and Parquet files need pyarrow: pip install "lloydformer[data]"'
        ) from None
    return pyarrow


def read_csv(path: Path, columns: tuple[str, ...] | None) -> Table:
    """Read a CSV file, or some of its columns; raises `ValueError` with the faulty line."""
    arrow, delimiter, header = import_pyarrow(), delimiter_of(path), read_header(path)
    names, width = header.names, len(header.fields)
    labels = names or [f"number {i + 1}" for i in range(width)]
    indices = ColumnFinder(path, names, width).indices(columns)
    wanted = [labels[i] for i in indices]
    _refuse_unnamed(path, wanted)
    _refuse_duplicates(path, labels, wanted)
    read = arrow.csv.ReadOptions(
        column_names=labels, skip_rows=header.lines if names else 0, block_size=_block(width)
    )
    parse = arrow.csv.ParseOptions(delimiter=delimiter)
    convert = arrow.csv.ConvertOptions(
        column_types={label: arrow.float64() for label in wanted}, include_columns=wanted,
        null_values=MISSING_VALUES,
    )  # fmt: skip
    try:
        with arrow.csv.open_csv(path, read, parse, convert) as stream:
            points = concatenate(_rows(path, stream, wanted))
    except arrow.ArrowInvalid as error:
        chosen = dict(zip(indices, wanted, strict=True))
        raise ValueError(f"{path}: {_csv_fault(path, header, chosen, str(error))}") from None
    return Table(points, tuple(wanted) if names else None)


def _block(width: int) -> int:
    """Bytes that are parsed at a time; a line of the file must fit in them."""
    return max(_BLOCK, 64 * width)


def _csv_fault(path: Path, header: CsvHeader, columns: dict[int, str], error: str) -> str:
    """What is wrong with a CSV file that pyarrow could not read; `error` is its message."""
    width = len(header.fields)
    if "Empty CSV" in error:
        return "found no rows; points are rows of numbers"
    found = header.wrong_separator or first_error(path, delimiter_of(path), columns, width)
    if found is None and "straddling" in error:
        return f"found a line of more than {_block(width):,} bytes; write shorter ones"
    return found or error.splitlines()[0][:300]


def _refuse_unnamed(path: Path, wanted: list[str]) -> None:
    """A column without a name is usually the row numbers that pandas writes."""
    if "" in wanted:
        raise ValueError(
            f"{path}: column {wanted.index('') + 1} has no name (are these row numbers?); "
            "name it, or choose the other columns"
        )


def _refuse_duplicates(path: Path | str, labels: list[str], wanted: list[str]) -> None:
    found, chosen = Counter(labels), Counter(wanted)
    for label in wanted:
        if found[label] > 1 or chosen[label] > 1:
            raise ValueError(
                f"{path}: column {label} appears twice; give each column its own name, and "
                "choose it once"
            )


def read_parquet(path: Path, columns: tuple[str, ...] | None) -> Table:
    """Read a Parquet file, or some of its columns."""
    arrow = import_pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        wanted = _wanted(path, file.schema_arrow, columns)
        batches = file.iter_batches(columns=wanted)
        points = concatenate(_rows(path, batches, wanted))
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from None
    return Table(points, tuple(wanted))


def from_arrow(source: Any, columns: tuple[str, ...] | None) -> Table:
    """Convert a pyarrow Table, or some of its columns."""
    wanted = _wanted("source", source.schema, columns)
    points = concatenate(_rows("source", source.to_batches(), wanted))
    return Table(points, tuple(wanted))


def _wanted(path: Path | str, schema: Any, columns: tuple[str, ...] | None) -> list[str]:
    """The names of the columns to read; raises `ValueError` if one is not numeric."""
    names: list[str] = schema.names
    indices = ColumnFinder(path, names, len(names)).indices(columns)
    if not columns:
        rows = _row_numbers(schema)
        indices = [i for i in indices if names[i] not in rows]
    wanted = [names[i] for i in indices]
    _refuse_duplicates(path, names, wanted)
    kinds = schema.types
    for i in indices:
        if not _numeric(import_pyarrow(), kinds[i]):
            raise ValueError(
                f"{path}: column {names[i]} holds no numbers; choose columns of numbers"
            )
    return wanted


def _row_numbers(schema: Any) -> set[str]:
    """Columns that are the index of a pandas data frame, usually row numbers."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in index if isinstance(name, str)}


def _numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


def _rows(path: Path | str, batches: Iterable[Any], names: list[str]) -> Iterator[np.ndarray]:
    """Convert batches to arrays of rows: float32 if every column is, else float64."""
    start = 0
    for batch in batches:
        columns = [batch.column(name) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.null_count:
                row = start + 1 + column.is_null().index(True).as_py()
                raise ValueError(
                    f"{path}: row {row}, column {name}: found a missing value; fill in or drop "
                    "rows with missing values"
                )
        arrays = [c.to_numpy(zero_copy_only=False) for c in columns]
        small = all(a.dtype == np.float32 for a in arrays)
        yield np.column_stack(arrays).astype(np.float32 if small else np.float64, copy=False)
        start += batch.num_rows
