"""Files of points: CSV, Parquet, NPY, NPZ, and folders of them.

The result is one array (n, d) of floats. NPY files are memory-mapped. Small tables stay in
memory; large ones are written to a scratch file on disk and mapped from there.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lloydformer.data.columns import ColumnFinder, Table
from lloydformer.data.numpy_files import map_npy, read_npz
from lloydformer.data.paths import check_path
from lloydformer.data.scratch import concatenate, scratch_array
from lloydformer.data.tables import read_csv, read_parquet

_ROWS = 1 << 16
"""Rows of a chunk; bounds temporary memory."""


def read_table(path: Path, columns: tuple[str, ...] | None) -> Table:
    """Read the points of a file, or of all files of a folder in the order of their names."""
    if path.is_dir():
        return _read_folder(path, columns)
    check_path(path)
    reader = {".parquet": read_parquet, ".npy": _read_npy, ".npz": _read_npz}.get(
        path.suffix.lower(), read_csv
    )
    return check_table(path, reader(path, columns))


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

    return Table(concatenate(parts()), first.names)


def check_table(path: Path | str, table: Table) -> Table:
    """Return the table; raises `ValueError` if it is empty or a value is not finite."""
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
    return Table(select_columns(path, map_npy(path), columns), None)


def _read_npz(path: Path, columns: tuple[str, ...] | None) -> Table:
    return Table(select_columns(path, read_npz(path), columns), None)


def select_columns(
    path: Path | str, points: np.ndarray, columns: tuple[str, ...] | None
) -> np.ndarray:
    """Return the columns with these numbers, counted from 1, as floats.

    An array of floats is returned as it is if all columns are wanted: a mapped file stays mapped.
    """
    if points.ndim != 2 or points.dtype.kind not in "iubf":
        raise ValueError(f"{path}: found dtype {points.dtype} and shape {points.shape}; "
                         "points are rows of numbers (n, d)")  # fmt: skip
    kind = points.dtype if points.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if columns is None and points.dtype == kind:
        return points
    width = points.shape[1]
    indices = ColumnFinder(path, None, width).indices(columns)
    copy = scratch_array(len(points), len(indices), dtype=kind)
    for start in range(0, len(points), _ROWS):
        copy[start : start + _ROWS] = points[start : start + _ROWS, indices]
    return copy
