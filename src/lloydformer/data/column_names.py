"""Column names of a file, without reading its rows."""

from pathlib import Path

from lloydformer.data.csv_header import read_header
from lloydformer.data.tables import import_pyarrow

_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")


def column_names(path: Path) -> tuple[str, ...] | None:
    """Return the names in a table, or in the first table of a folder; None if it has none."""
    if path.is_dir():
        tables = sorted(file for file in path.iterdir() if file.suffix.lower() in _SUFFIXES)
        return column_names(tables[0]) if tables else None
    kind = path.suffix.lower()
    if not path.is_file() or kind not in _SUFFIXES:
        return None
    if kind == ".parquet":
        return _parquet_names(path)
    names = read_header(path).names
    return None if names is None else tuple(names)


def _parquet_names(path: Path) -> tuple[str, ...] | None:
    """None for a file that cannot be read: reading its rows raises the error."""
    arrow = import_pyarrow()
    try:
        return tuple(arrow.parquet.read_schema(path).names)
    except (arrow.ArrowException, OSError):
        return None
