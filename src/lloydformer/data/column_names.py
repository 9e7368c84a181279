"""The names of columns, without reading the rows."""

from pathlib import Path

from lloydformer.data.csv_header import first_line
from lloydformer.data.tables import _arrow

_TABLES = (".csv", ".tsv", ".txt", ".parquet")


def column_names(path: Path) -> tuple[str, ...] | None:
    """The names in a table, or in the first table of a folder; None where there are none."""
    if path.is_dir():
        tables = sorted(file for file in path.iterdir() if file.suffix.lower() in _TABLES)
        return column_names(tables[0]) if tables else None
    kind = path.suffix.lower()
    if not path.is_file() or kind not in _TABLES:
        return None
    if kind == ".parquet":
        return _in_parquet(path)
    names = first_line(path).names
    return None if names is None else tuple(names)


def _in_parquet(path: Path) -> tuple[str, ...] | None:
    """None for a file that cannot be read: whoever reads its rows says why."""
    arrow = _arrow()
    try:
        return tuple(arrow.parquet.read_schema(path).names)
    except (arrow.ArrowException, OSError):
        return None
