"""CSV files, Parquet files and pyarrow tables as tables of points."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.csv_errors import MISSING_VALUES, first_error
from lloydformer.data.csv_header import delimiter_of, read_header
from lloydformer.data.scratch import concatenate


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns if it has names."""

    points: np.ndarray
    names: tuple[str, ...] | None


def column_index(path: Path | str, column: str, names: list[str] | None, count: int) -> int:
    """Return the index of a column, given by name, or by number from 1 if there are no names."""
    if names and column in names:
        return names.index(column)
    if column.isdigit() and 1 <= int(column) <= count and not names:
        return int(column) - 1
    known = ", ".join(names) if names else f"1 to {count}"
    raise ValueError(f"{path}: columns: found {column!r}; there are {known}")


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
    indices = [column_index(path, c, names, width) for c in columns] if columns else range(width)
    wanted = [labels[i] for i in indices]
    _refuse_unnamed(path, wanted)
    _refuse_duplicates(path, labels, wanted)
    read = arrow.csv.ReadOptions(column_names=labels, skip_rows=header.lines if names else 0)
    parse = arrow.csv.ParseOptions(delimiter=delimiter)
    convert = arrow.csv.ConvertOptions(
        column_types={label: arrow.float64() for label in wanted}, include_columns=wanted,
        null_values=MISSING_VALUES,
    )  # fmt: skip
    try:
        with arrow.csv.open_csv(path, read, parse, convert) as stream:
            points = concatenate(_rows(path, stream, wanted))
    except arrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise ValueError(f"{path}: found no rows; points are rows of numbers") from None
        chosen = dict(zip(indices, wanted, strict=True))
        found = header.wrong_separator or first_error(path, delimiter, chosen, width)
        raise ValueError(f"{path}: {found or str(error).splitlines()[0]}") from None
    return Table(points, tuple(wanted) if names else None)


def _refuse_unnamed(path: Path, wanted: list[str]) -> None:
    """A column without a name is usually the row numbers that pandas writes."""
    if "" in wanted:
        raise ValueError(
            f"{path}: column {wanted.index('') + 1} has no name (are these row numbers?); "
            "name it, or choose the other columns"
        )


def _refuse_duplicates(path: Path, labels: list[str], wanted: list[str]) -> None:
    for label in wanted:
        if labels.count(label) > 1 or wanted.count(label) > 1:
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
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # usually row numbers
    own = [name for name in names if name not in index]
    wanted = [names[column_index(path, c, names, len(names))] for c in columns] if columns else own
    for name in wanted:
        if not _numeric(import_pyarrow(), schema.field(name).type):
            raise ValueError(f"{path}: column {name} holds no numbers; choose columns of numbers")
    return wanted


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
