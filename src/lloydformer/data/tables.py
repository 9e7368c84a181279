"""Tables with columns: CSV and Parquet, read with pyarrow, and its own tables."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.faults import first_fault, is_number
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
    arrow = _arrow()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    fields, lines = _first_fields(path, delimiter)
    names = _names(fields)
    labels = names or [f"f{i}" for i in range(len(fields))]
    places = (
        [place(path, c, names, len(fields)) for c in columns] if columns else range(len(labels))
    )
    wanted = [labels[i] for i in places]
    _refuse_twice(path, labels, wanted)
    read = arrow.csv.ReadOptions(column_names=labels, skip_rows=lines if names else 0)
    parse = arrow.csv.ParseOptions(delimiter=delimiter)
    convert = arrow.csv.ConvertOptions(
        column_types={label: arrow.float64() for label in wanted}, include_columns=wanted
    )
    try:
        with arrow.csv.open_csv(path, read, parse, convert) as stream:
            points = gathered(_rows(path, batch, wanted) for batch in stream)
    except arrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise ValueError(f"{path}: found no rows; points are rows of numbers") from None
        said = dict(
            zip(places, wanted if names else [f"number {i + 1}" for i in places], strict=True)
        )
        fault = first_fault(path, delimiter, said, len(labels), convert.null_values)
        raise ValueError(f"{path}: {fault or str(error).splitlines()[0]}") from None
    return Table(points, tuple(wanted) if names else None)


def _first_fields(path: Path, delimiter: str) -> tuple[list[str], int]:
    """What stands in the first line that is not empty, and how many lines that takes."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        fields = next((row for row in reader if row), [])
        return [field.strip() for field in fields], reader.line_num


def header(path: Path) -> list[str] | None:
    """The names of the columns, if the first line has names."""
    return _names(_first_fields(path, "\t" if path.suffix.lower() == ".tsv" else ",")[0])


def _names(fields: list[str]) -> list[str] | None:
    """The fields of the first line, if one of them is not a number."""
    return None if all(is_number(field or "nan") for field in fields) else fields


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
        points = gathered(_rows(path, batch, wanted) for batch in batches)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from None
    return Table(points, tuple(wanted))


def from_arrow(source: Any, columns: tuple[str, ...] | None) -> Table:
    """A pyarrow Table."""
    wanted = _wanted("source", source.schema, columns)
    points = gathered(_rows("source", batch, wanted) for batch in source.to_batches())
    return Table(points, tuple(wanted))


def _wanted(path: Path | str, schema: Any, columns: tuple[str, ...] | None) -> list[str]:
    """The names of the columns to be read, all of them columns of numbers."""
    names: list[str] = schema.names
    wanted = [names[place(path, c, names, len(names))] for c in columns] if columns else names
    for name in wanted:
        if not _numeric(_arrow(), schema.field(name).type):
            raise ValueError(f"{path}: column {name} holds no numbers; choose columns of numbers")
    return wanted


def _numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


def _rows(path: Path | str, batch: Any, names: list[str]) -> np.ndarray:
    """A batch of columns as rows; float32 where every column is."""
    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise ValueError(
                f"{path}: column {name}: found {column.null_count} missing values; "
                "fill them in or drop those rows"
            )
    arrays = [c.to_numpy(zero_copy_only=False) for c in columns]
    small = all(a.dtype == np.float32 for a in arrays)
    return np.column_stack(arrays).astype(np.float32 if small else np.float64, copy=False)
