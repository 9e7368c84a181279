"""Tables with columns: CSV and Parquet, read with pyarrow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.scratch import gathered


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns where it has them."""

    points: np.ndarray
    names: tuple[str, ...] | None


def place(path: Path, column: str, names: list[str] | None, count: int) -> int:
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
    csv = arrow.csv
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    names = _header(path, delimiter)
    read = csv.ReadOptions(autogenerate_column_names=names is None)
    parse = csv.ParseOptions(delimiter=delimiter)
    count = len(names) if names else _width(path, delimiter)
    labels = names or [f"f{i}" for i in range(count)]
    wanted = [labels[place(path, c, names, count)] for c in columns] if columns else labels
    convert = csv.ConvertOptions(
        column_types={label: arrow.float64() for label in wanted}, include_columns=wanted
    )
    try:
        with csv.open_csv(path, read, parse, convert) as stream:
            points = gathered(_rows(path, batch, wanted) for batch in stream)
    except arrow.ArrowInvalid as error:
        raise ValueError(_csv_complaint(path, str(error), labels)) from None
    return Table(points, tuple(wanted) if names else None)


def _csv_complaint(path: Path, error: str, labels: list[str]) -> str:
    """pyarrow's words, shortened, with the repair."""
    words = error.split("\n")[0]
    for number, label in enumerate(labels):
        words = words.replace(f"column #{number}:", f"column {label}:")
    if "conversion error" in words:
        return f"{path}: {words}; choose columns of numbers"
    return f"{path}: {words}; give every row the same number of columns"


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.readline().rstrip("\r\n")


def _width(path: Path, delimiter: str) -> int:
    return len(_first_line(path).split(delimiter))


def _header(path: Path, delimiter: str) -> list[str] | None:
    """The names in the first line, if one of its fields is not a number."""
    fields = [f.strip().strip('"') for f in _first_line(path).split(delimiter)]
    return None if all(_is_number(f) for f in fields) else fields


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def read_parquet(path: Path, columns: tuple[str, ...] | None) -> Table:
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        names = file.schema_arrow.names
        wanted = [names[place(path, c, names, len(names))] for c in columns] if columns else names
        text = [n for n in wanted if not _numeric(arrow, file.schema_arrow.field(n).type)]
        if text:
            raise ValueError(
                f"{path}: column {text[0]} holds no numbers; choose columns of numbers"
            )
        batches = file.iter_batches(columns=wanted)
        points = gathered(_rows(path, batch, wanted) for batch in batches)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from None
    return Table(points, tuple(wanted))


def _numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


def _rows(path: Path, batch: Any, names: list[str]) -> np.ndarray:
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
