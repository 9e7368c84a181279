"""Tables with columns: CSV and Parquet, read with pyarrow, and its own tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.csv_errors import NOTHING, first_fault
from lloydformer.data.csv_header import delimiter_of, first_line
from lloydformer.data.scratch import gathered


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns where it has them."""

    points: np.ndarray
    names: tuple[str, ...] | None


def place(path: Path | str, column: str, names: list[str] | None, count: int) -> int:
    """Where a column is, by its name, or by its number from 1 where there are no names."""
    if names and column in names:
        return names.index(column)
    if column.isdigit() and 1 <= int(column) <= count and not names:
        return int(column) - 1
    known = ", ".join(names) if names else f"1 to {count}"
    raise ValueError(f"{path}: columns: found {column!r}; there are {known}")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            'CSV and Parquet files are read with pyarrow: pip install "lloydformer[data]"'
        ) from None
    return pyarrow


def read_csv(path: Path, columns: tuple[str, ...] | None) -> Table:
    arrow, delimiter, first = _arrow(), delimiter_of(path), first_line(path)
    names, width = first.names, len(first.fields)
    labels = names or [f"number {i + 1}" for i in range(width)]
    places = [place(path, c, names, width) for c in columns] if columns else range(width)
    wanted = [labels[i] for i in places]
    _refuse_unnamed(path, wanted)
    _refuse_twice(path, labels, wanted)
    read = arrow.csv.ReadOptions(column_names=labels, skip_rows=first.lines if names else 0)
    parse = arrow.csv.ParseOptions(delimiter=delimiter)
    convert = arrow.csv.ConvertOptions(
        column_types={label: arrow.float64() for label in wanted}, include_columns=wanted,
        null_values=NOTHING,
    )  # fmt: skip
    try:
        with arrow.csv.open_csv(path, read, parse, convert) as stream:
            points = gathered(_rows(path, stream, wanted))
    except arrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise ValueError(f"{path}: found no rows; points are rows of numbers") from None
        chosen = dict(zip(places, wanted, strict=True))
        fault = first.separated_otherwise or first_fault(path, delimiter, chosen, width)
        raise ValueError(f"{path}: {fault or str(error).splitlines()[0]}") from None
    return Table(points, tuple(wanted) if names else None)


def _refuse_unnamed(path: Path, wanted: list[str]) -> None:
    """Numbers of the rows, as pandas writes them, must not pass for a measurement."""
    if "" in wanted:
        raise ValueError(
            f"{path}: column {wanted.index('') + 1} has no name (are these numbers of the rows?); "
            "name it, or choose the other columns"
        )


def _refuse_twice(path: Path, labels: list[str], wanted: list[str]) -> None:
    for label in wanted:
        if labels.count(label) > 1 or wanted.count(label) > 1:
            raise ValueError(
                f"{path}: column {label} is there twice; give each column a name of its own, and "
                "choose it once"
            )


def read_parquet(path: Path, columns: tuple[str, ...] | None) -> Table:
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        wanted = _wanted(path, file.schema_arrow, columns)
        batches = file.iter_batches(columns=wanted)
        points = gathered(_rows(path, batches, wanted))
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from None
    return Table(points, tuple(wanted))


def from_arrow(source: Any, columns: tuple[str, ...] | None) -> Table:
    """A pyarrow Table."""
    wanted = _wanted("source", source.schema, columns)
    points = gathered(_rows("source", source.to_batches(), wanted))
    return Table(points, tuple(wanted))


def _wanted(path: Path | str, schema: Any, columns: tuple[str, ...] | None) -> list[str]:
    """The names of the columns to be read, all of them columns of numbers."""
    names: list[str] = schema.names
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # numbers of rows, mostly
    own = [name for name in names if name not in index]
    wanted = [names[place(path, c, names, len(names))] for c in columns] if columns else own
    for name in wanted:
        if not _numeric(_arrow(), schema.field(name).type):
            raise ValueError(f"{path}: column {name} holds no numbers; choose columns of numbers")
    return wanted


def _numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


def _rows(path: Path | str, batches: Iterable[Any], names: list[str]) -> Iterator[np.ndarray]:
    """Batches of columns as rows; float32 where every column is."""
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
