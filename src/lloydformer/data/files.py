"""Files of points: CSV, Parquet, NPY, NPZ, folders of them, and OpenML by name.

Everything ends as one array (n, d) of floats: NPY files are mapped, small tables are held in
memory, and large ones are written once to a scratch file on disk and mapped from there.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from lloydformer.data.scratch import gathered, room
from lloydformer.data.tables import Table, place, read_csv, read_parquet

_ROWS = 1 << 16
"""Rows that are looked at together."""


def read_table(path: Path, columns: tuple[str, ...] | None) -> Table:
    """The points in a file or in the files of a folder, in the order of their names."""
    if path.is_dir():
        return _read_folder(path, columns)
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder; check the path")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; pass one with rows of numbers")
    reader = {".csv": read_csv, ".tsv": read_csv, ".txt": read_csv, ".parquet": read_parquet,
              ".npy": _read_npy, ".npz": _read_npz}.get(path.suffix.lower())  # fmt: skip
    if reader is None:
        raise ValueError(f"{path}: {path.suffix or 'no'} ending is not known; "
                         "pass .csv, .tsv, .parquet, .npy, .npz or a folder of them")  # fmt: skip
    return checked(path, reader(path, columns))


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


def checked(path: Path | str, table: Table) -> Table:
    """Rows of finite numbers, or where the first one is that is not."""
    points = table.points
    if len(points) == 0:
        raise ValueError(f"{path}: found no rows; points are rows of numbers")
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{path}: found shape {points.shape}; points are rows of numbers (n, d)")
    for start in range(0, len(points), _ROWS):
        part = points[start : start + _ROWS]
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
    return Table(chosen(path, points, columns), None)


def _read_npz(path: Path, columns: tuple[str, ...] | None) -> Table:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = [n for n in archive.files if archive[n].ndim == 2]
            name = "X" if "X" in names else names[0] if len(names) == 1 else None
            if name is None:
                raise ValueError(f"it holds {archive.files}, and none of them is called X")
            points = archive[name]
    except (ValueError, OSError, EOFError, BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None
    return Table(chosen(path, points, columns), None)


def chosen(path: Path | str, points: np.ndarray, columns: tuple[str, ...] | None) -> np.ndarray:
    """The wanted columns, by number counted from 1, as floats; a mapped file stays one."""
    if points.ndim != 2 or points.dtype.kind not in "iubf":
        raise ValueError(f"{path}: found dtype {points.dtype} and shape {points.shape}; "
                         "points are rows of numbers (n, d)")  # fmt: skip
    kind = points.dtype if points.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if columns is None and points.dtype == kind:
        return points
    width = points.shape[1]
    places = [place(path, c, None, width) for c in columns] if columns else list(range(width))
    copy = room(len(points), len(places), dtype=kind)
    for start in range(0, len(points), _ROWS):
        copy[start : start + _ROWS] = points[start : start + _ROWS, places]
    return copy
