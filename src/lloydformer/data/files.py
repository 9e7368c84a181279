"""Files of points: CSV, Parquet, NPY, NPZ, folders of them, and OpenML by name.

Everything ends as one array (n, d) of floats: NPY files are mapped, small tables are held in
memory, and large ones are written once to a scratch file on disk and mapped from there.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_IN_MEMORY = 1 << 28
"""Bytes that a table may take before it goes to a scratch file."""


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns where it has them."""

    points: np.ndarray
    names: tuple[str, ...] | None


def read_table(path: Path, columns: tuple[str, ...] | None) -> Table:
    """The points in a file or in the files of a folder, in the order of their names."""
    if path.is_dir():
        return _read_folder(path, columns)
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder; check the path")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; pass one with rows of numbers")
    reader = {".csv": _read_csv, ".tsv": _read_csv, ".txt": _read_csv, ".parquet": _read_parquet,
              ".npy": _read_npy, ".npz": _read_npz}.get(path.suffix.lower())  # fmt: skip
    if reader is None:
        raise ValueError(f"{path}: {path.suffix or 'no'} ending is not known; "
                         "pass .csv, .tsv, .parquet, .npy, .npz or a folder of them")  # fmt: skip
    return _checked(path, reader(path, columns))


def _read_folder(path: Path, columns: tuple[str, ...] | None) -> Table:
    known = (".csv", ".tsv", ".parquet", ".npy", ".npz")
    files = sorted(f for f in path.iterdir() if f.suffix.lower() in known)
    if not files:
        raise ValueError(f"{path}: no .csv, .parquet, .npy or .npz file in this folder")
    tables = (read_table(file, columns) for file in files)
    first = next(tables)

    def parts() -> Iterator[np.ndarray]:
        yield first.points
        for file, table in zip(files[1:], tables, strict=True):
            if table.names != first.names or table.points.shape[1] != first.points.shape[1]:
                raise ValueError(
                    f"{file}: its columns differ from those of {files[0].name}; "
                    "put files with the same columns in a folder, or choose columns"
                )
            yield table.points

    return Table(gathered(parts()), first.names)


def _checked(path: Path, table: Table) -> Table:
    points = table.points
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{path}: found shape {points.shape}; points are rows of numbers (n, d)")
    for start in range(0, len(points), 1 << 16):
        part = points[start : start + (1 << 16)]
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            name = table.names[column] if table.names else f"number {column + 1}"
            raise ValueError(
                f"{path}: row {start + row + 1}, column {name}: found {part[row, column]}; "
                "fill in or drop rows with missing or infinite values"
            )
    return table


def _read_npy(path: Path, columns: tuple[str, ...] | None) -> Table:
    try:
        points = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: not a readable .npy file ({error})") from None
    return Table(_floats(path, _chosen(path, points, None, columns)), None)


def _read_npz(path: Path, columns: tuple[str, ...] | None) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = [n for n in archive.files if archive[n].ndim == 2]
            name = "X" if "X" in names else names[0] if len(names) == 1 else None
            if name is None:
                raise ValueError(f"it holds {archive.files}, and none of them is called X")
            points = archive[name]
    except Exception as error:  # zipfile, zlib and numpy raise each their own
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None
    return Table(_floats(path, _chosen(path, points, None, columns)), None)


def _chosen(
    path: Path, points: np.ndarray, names: list[str] | None, columns: tuple[str, ...] | None
) -> np.ndarray:
    """The wanted columns, by name or by number counted from 1."""
    if columns is None:
        return points
    return points[:, [_place(path, c, names, points.shape[1]) for c in columns]]


def _place(path: Path, column: str, names: list[str] | None, count: int) -> int:
    if names and column in names:
        return names.index(column)
    if column.isdigit() and 1 <= int(column) <= count and not names:
        return int(column) - 1
    known = ", ".join(names) if names else f"1 to {count}"
    raise ValueError(f"{path}: columns: found {column!r}; there are {known}")


def _floats(path: Path, points: np.ndarray) -> np.ndarray:
    if points.dtype in (np.float32, np.float64):
        return points
    if points.dtype.kind in "iub":
        return points.astype(np.float64)
    raise ValueError(f"{path}: found dtype {points.dtype}; points are numbers")


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


def _read_csv(path: Path, columns: tuple[str, ...] | None) -> Table:
    arrow = _arrow()
    csv = arrow.csv
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    names = _header(path, delimiter)
    read = csv.ReadOptions(autogenerate_column_names=names is None)
    parse = csv.ParseOptions(delimiter=delimiter)
    count = len(names) if names else _width(path, delimiter)
    labels = names or [f"f{i}" for i in range(count)]
    wanted = [labels[_place(path, c, names, count)] for c in columns] if columns else labels
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


def _read_parquet(path: Path, columns: tuple[str, ...] | None) -> Table:
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        names = file.schema_arrow.names
        wanted = [names[_place(path, c, names, len(names))] for c in columns] if columns else names
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


def gathered(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All parts one below the other: in memory, or mapped from a scratch file if they are many."""
    held: list[np.ndarray] = []
    parts = iter(parts)
    for part in parts:
        held.append(np.ascontiguousarray(part))
        if sum(p.nbytes for p in held) > _IN_MEMORY:
            return _spilled(held, parts)
    if not held:
        return np.empty((0, 0))
    return np.concatenate(held) if len(held) > 1 else held[0]


def _spilled(held: list[np.ndarray], rest: Iterator[np.ndarray]) -> np.ndarray:
    """The scratch file has no name any more: the disk is free again when the array is gone."""
    kind, width = held[0].dtype, held[0].shape[1]
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as file:
        for part in held:
            part.tofile(file)
        for part in rest:
            np.ascontiguousarray(part, dtype=kind).tofile(file)
        file.flush()
        n_rows = file.tell() // (kind.itemsize * width)
        return np.memmap(file, dtype=kind, mode="r", shape=(n_rows, width))
