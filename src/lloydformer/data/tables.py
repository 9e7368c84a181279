"""CSV files, Parquet files and pyarrow tables as tables of points."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.columns import ColumnFinder, Table, refuse_duplicates
from lloydformer.data.csv_errors import MISSING_VALUES, first_error
from lloydformer.data.csv_header import CsvHeader, delimiter_of, read_header
from lloydformer.data.scratch import check_room, concatenate

_BLOCK = 1 << 24
"""Bytes of a CSV file that are parsed at a time, unless it has many columns."""
_BATCH = 1 << 22
"""Numbers of a Parquet file that are read at a time."""


def import_pyarrow() -> Any:
    """Import pyarrow with its readers; raises `ValueError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            'CSV and Parquet files and Arrow streams need pyarrow: pip install "lloydformer[data]"'
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
    refuse_duplicates(path, labels, wanted)
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


def read_parquet(path: Path, columns: tuple[str, ...] | None) -> Table:
    """Read a Parquet file, or some of its columns."""
    arrow = import_pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        wanted = _wanted(path, file.schema_arrow, columns)
        check_room(file.metadata.num_rows * len(wanted) * 4)
        rows = max(1, min(_BATCH // max(len(wanted), 1), 1 << 16))
        batches = file.iter_batches(columns=wanted, batch_size=rows)
        points = concatenate(_rows(path, batches, wanted))
    except (arrow.ArrowException, OSError) as error:
        words = " ".join(str(error).split())[:300]
        raise ValueError(f"{path}: not a readable Parquet file ({words})") from None
    return Table(points, tuple(wanted))


def from_arrow(source: Any, columns: tuple[str, ...] | None) -> Table:
    """Convert a pyarrow Table, or some of its columns."""
    wanted = _wanted("source", source.schema, columns)
    points = concatenate(_rows("source", source.to_batches(), wanted))
    return Table(points, tuple(wanted))


def from_arrow_stream(source: Any, columns: tuple[str, ...] | None) -> Table:
    """Convert what has `__arrow_c_stream__`, as frames of polars; other than tables raise."""
    arrow = import_pyarrow()
    try:
        reader = arrow.RecordBatchReader.from_stream(source)
    except (arrow.ArrowException, TypeError) as error:
        words = str(error).split("\n")[0]
        raise ValueError(
            f"source: found {type(source).__name__}, whose Arrow stream is no table ({words})"
        ) from None
    return from_arrow(reader.read_all(), columns)


def _wanted(path: Path | str, schema: Any, columns: tuple[str, ...] | None) -> list[str]:
    """The names of the columns to read; raises `ValueError` if one is not numeric."""
    names: list[str] = schema.names
    indices = ColumnFinder(path, names, len(names)).indices(columns)
    if not columns:
        rows = _row_numbers(path, schema)
        indices = [i for i in indices if names[i] not in rows]
    wanted = [names[i] for i in indices]
    refuse_duplicates(path, names, wanted)
    kinds = schema.types
    for i in indices:
        if not _numeric(import_pyarrow(), kinds[i]):
            raise ValueError(
                f"{path}: column {names[i]} holds no numbers; choose columns of numbers"
            )
    return wanted


def _row_numbers(path: Path | str, schema: Any) -> set[str]:
    """Columns that are the index of a pandas data frame, usually row numbers."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns") or []
        return {name for name in index if isinstance(name, str)}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path}: what pandas noted of its columns is damaged; choose columns, or "
                         "save it again") from None  # fmt: skip


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
