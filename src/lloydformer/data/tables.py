"""Parquet files and pyarrow tables as tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.record_source import refuse_words
from lloydformer.data.scratch import check_room
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey, TableBatch

_FIRST = 1000
"""Rows whose words are looked at."""
_BATCH = 1 << 22
"""Numbers of a Parquet file that are read at a time."""


def import_pyarrow() -> Any:
    """Import pyarrow with its readers; raises `ValueError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            'Parquet files and Arrow streams need pyarrow: pip install "lloydformer[data]"'
        ) from None
    return pyarrow


class ArrowSource:
    """Columns of pyarrow, in memory or in a Parquet file.

    Parameters
    ----------
    name : str
        The file, for messages.
    schema : pyarrow.Schema
        Names and types of the columns.
    read : callable
        Takes names of columns and returns batches of rows.
    options : TableOptions
        What the user said.
    """

    def __init__(
        self, name: str, schema: Any, read: Callable[[list[str]], Iterable[Any]],
        options: TableOptions,
    ) -> None:  # fmt: skip
        self.name, self.read, self.options = name, read, options
        self.schema, self.width = schema, len(schema.types)
        self._names = tuple(schema.names)
        other = other_types(schema)
        self._numeric = [i not in other for i in range(self.width)]

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._names

    @property
    def row_numbers(self) -> set[str]:
        return index_columns(self.name, self.schema)

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        if not all(self._numeric[i] for i in numbers):
            refuse_words(self, self.survey(), numbers, self.options)
        names = [self._names[i] for i in (*numbers, *texts)]
        for batch in self.read(names):
            columns = [batch.column(name) for name in names]
            points = stacked_columns(columns[: len(numbers)], batch.num_rows)
            yield TableBatch(points, [_texts(column) for column in columns[len(numbers) :]])

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """By their types; words are those of the first rows."""
        found = [ColumnSurvey(numbers=int(numeric)) for numeric in self._numeric]
        others = [i for i, numeric in enumerate(self._numeric) if not numeric]
        batch = next(iter(self.read([self._names[i] for i in others])), None) if others else None
        for i in others:
            column = [] if batch is None else batch.column(self._names[i]).slice(0, _FIRST)
            for row, value in enumerate(column, start=1):
                if value.as_py() is not None:
                    found[i].add_word(str(value.as_py()), f"row {row}")
            found[i].n_words = max(found[i].n_words, 1)  # not numeric, if all are missing
        return found

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def index_columns(name: str, schema: Any) -> set[str]:
    """Columns that are the index of a pandas data frame, usually row numbers.

    Raises ValueError, with the name of the file, if what pandas noted is damaged.
    """
    try:
        index = (schema.pandas_metadata or {}).get("index_columns") or []
        return {column for column in index if isinstance(column, str)}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"{name}: what pandas noted of its columns is damaged; choose columns, or save it again"
        ) from None


def other_types(schema: Any) -> dict[int, str]:
    """The types of the columns that are not numbers, by the numbers of the columns."""
    types = import_pyarrow().types
    tests = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    return {i: str(kind) for i, kind in enumerate(schema.types) if not any(t(kind) for t in tests)}


def stacked_columns(columns: list[Any], n_rows: int) -> np.ndarray:
    """Columns as an array of rows: float32 if every column is, else float64."""
    if not columns:
        return np.empty((n_rows, 0))
    arrays = [_floats(column) for column in columns]
    small = all(a.dtype == np.float32 for a in arrays)
    return np.column_stack(arrays).astype(np.float32 if small else np.float64, copy=False)


def _floats(column: Any) -> np.ndarray:
    arrow = import_pyarrow()
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    if column.null_count or arrow.types.is_decimal(column.type):
        column = column.cast(arrow.float32() if column.type == arrow.float32() else arrow.float64())
    return column.to_numpy(zero_copy_only=False)


def _texts(column: Any) -> np.ndarray:
    values = column.to_pylist()
    return np.array([None if v is None else str(v) for v in values] + [None], dtype=object)[:-1]


def open_parquet(path: Path, options: TableOptions) -> ArrowSource:
    """Open a Parquet file, or standard input that holds one."""
    arrow = import_pyarrow()
    with _readable(arrow, path):
        schema = arrow.parquet.read_schema(path)

    def read(names: list[str]) -> Iterator[Any]:
        with _readable(arrow, path):
            file = arrow.parquet.ParquetFile(path)
            check_room(file.metadata.num_rows * len(names) * 4)
            rows = max(1, min(_BATCH // max(len(names), 1), 1 << 16))
            yield from file.iter_batches(columns=names, batch_size=rows)

    return ArrowSource(str(path), schema, read, options)


@contextmanager
def _readable(arrow: Any, path: Path) -> Iterator[None]:
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        words = " ".join(str(error).split())[:300]
        raise ValueError(f"{path}: not a readable Parquet file ({words})") from None


def arrow_source(source: Any, options: TableOptions) -> ArrowSource:
    """A pyarrow Table as a table."""
    return ArrowSource(
        "source", source.schema, lambda names: source.select(names).to_batches(), options
    )


def arrow_stream_source(source: Any, options: TableOptions) -> ArrowSource:
    """What has `__arrow_c_stream__`, as frames of polars; other than tables raise ValueError."""
    arrow = import_pyarrow()
    try:
        reader = arrow.RecordBatchReader.from_stream(source)
    except (arrow.ArrowException, TypeError) as error:
        words = str(error).split("\n")[0]
        raise ValueError(
            f"source: found {type(source).__name__}, whose Arrow stream is no table ({words})"
        ) from None
    return arrow_source(reader.read_all(), options)
