"""Tables whose columns have types: arrays, pandas frames, Arrow tables and Parquet files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lloydformer.data.mapped_files import check_disk_space
from lloydformer.data.table import ColumnSurvey, Names, Table, TableBatch, object_array
from lloydformer.data.table_options import TableOptions

# Rows of a column of words that are looked at to describe it in messages.
_FIRST = 1000
# Rows of a batch; bounds temporary memory, also if there are few columns.
_ROWS = 1 << 16
# Numbers of a Parquet file that are read at a time: 32 MB in float64, however many columns.
_NUMBERS = 1 << 22

# Takes names of columns, and returns batches of rows.
ColumnReader = Callable[[list[str]], Iterable[Any]]


class TypedTable(Table):
    """A table whose columns are numeric or not by their types, without a look at the values."""

    # The types of the columns that are not numeric, by their indices.
    others: Mapping[int, str] = MappingProxyType({})

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """Count by types; the words are those of the first rows, or the type."""
        found = [ColumnSurvey(numbers=int(i not in self.others)) for i in range(self.width)]
        for i, kind in self.others.items():
            for row, value in enumerate(self.first_values(i), start=1):
                if value is not None:
                    found[i].add_word(str(value), f"row {row}")
            if not found[i].n_words:
                found[i].add_word(kind, "type")
        return found

    def first_values(self, column: int) -> Iterable[Any]:
        """Return some values of a column, if they can be read; None where they are missing."""
        return ()

    def check_types(self, columns: Sequence[int]) -> None:
        """Raise `ValueError` if one of these columns is not numeric."""
        if not self.others.keys().isdisjoint(columns):
            self.refuse_words(columns, self.survey())


class ArrayTable(TypedTable):
    """An array of numbers (n, d), which may be mapped from a file."""

    def __init__(
        self, name: str, points: np.ndarray, options: TableOptions, names: Names = None
    ) -> None:
        if points.ndim != 2 or points.dtype.kind not in "iubf":
            raise ValueError(
                f"{name}: found dtype {points.dtype} and shape {points.shape}; points are rows of "
                "numbers (n, d)"
            )
        super().__init__(name, names, points.shape[1], options)
        self.points = points
        precise = points.dtype.kind == "f" and points.dtype.itemsize in (4, 8)
        self.dtype = points.dtype if precise else np.dtype(np.float64)

    def whole(self, numbers: Sequence[int]) -> np.ndarray | None:
        """Return the array itself, if these are all its columns: a mapped file stays mapped."""
        all_columns = list(numbers) == list(range(self.width))
        return self.points if all_columns and self.points.dtype == self.dtype else None

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        for start in range(0, len(self.points), _ROWS):
            part = self.points[start : start + _ROWS]
            words = [object_array([f"{value:.15g}" for value in part[:, i]]) for i in texts]
            yield TableBatch(part[:, list(numbers)].astype(self.dtype), words)


class FrameTable(TypedTable):
    """A pandas frame: float32 if every chosen column is, else float64; names if all are strings."""

    def __init__(self, frame: Any, options: TableOptions) -> None:
        named = all(isinstance(name, str) for name in frame.columns)
        names = tuple(frame.columns) if named else None
        super().__init__("source", names, frame.shape[1], options)
        self.frame = frame
        self.others = {i: str(t) for i, t in enumerate(frame.dtypes) if t.kind not in "iubf"}

    def first_values(self, column: int) -> Iterable[Any]:
        return self.frame.iloc[:_FIRST, column]

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        self.check_types(numbers)
        chosen = self.frame.iloc[:, list(numbers)]
        small = len(numbers) and all(dtype == np.float32 for dtype in chosen.dtypes)
        points = chosen.to_numpy(dtype=np.float32 if small else np.float64, na_value=np.nan)
        columns = [self.frame.iloc[:, i] for i in texts]
        words = [c.astype(object).where(c.notna(), None).to_numpy() for c in columns]
        yield TableBatch(np.ascontiguousarray(points), words)


class ArrowTable(TypedTable):
    """Columns of pyarrow, in memory or in a Parquet file."""

    def __init__(self, name: str, schema: Any, read: ColumnReader, options: TableOptions) -> None:
        types = import_pyarrow().types
        tests = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        super().__init__(name, schema.names, len(schema.types), options)
        kinds = enumerate(schema.types)
        self.others = {i: str(kind) for i, kind in kinds if not any(test(kind) for test in tests)}
        self.schema, self.read = schema, read
        self._columns = schema.names  # pyarrow makes a new list at each access

    @property
    def index_columns(self) -> frozenset[str]:
        try:
            index = (self.schema.pandas_metadata or {}).get("index_columns") or []
            return frozenset(column for column in index if isinstance(column, str))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(
                f"{self.name}: the pandas metadata of its columns is damaged; choose columns, or "
                "save it again"
            ) from None

    def first_values(self, column: int) -> Iterable[Any]:
        batch = next(iter(self.read([self._columns[column]])), None)
        return () if batch is None else batch.column(0).slice(0, _FIRST).to_pylist()

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        self.check_types(numbers)
        names = [self._columns[i] for i in (*numbers, *texts)]
        if repeated := [name for name in names if name in self.repeated]:
            raise ValueError(
                f"{self.name}: column {repeated[0]} appears twice; give each column its own name"
            )
        for batch in self.read(names):
            columns = [batch.column(name) for name in names]
            points = stack_columns(columns[: len(numbers)], batch.num_rows)
            words = [
                object_array([value if value is None else str(value) for value in c.to_pylist()])
                for c in columns[len(numbers) :]
            ]
            yield TableBatch(points, words)


def find_pyarrow() -> Any:
    """Return pyarrow, or None if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def import_pyarrow() -> Any:
    """Import pyarrow with its reader of Parquet; raises `ValueError` if it is not installed."""
    if find_pyarrow() is None:
        raise ValueError(
            'Parquet files and Arrow streams need pyarrow: pip install "lloydformer[data]"'
        )
    import pyarrow.parquet

    return pyarrow


def stack_columns(columns: list[Any], n_rows: int) -> np.ndarray:
    """Return columns as an array of rows: float32 if every column is, else float64."""
    arrow, arrays = import_pyarrow(), []
    for column in columns:
        # As NumPy arrays these would hold Python objects; other types become floats by themselves
        # where a value is missing.
        if arrow.types.is_boolean(column.type) or arrow.types.is_decimal(column.type):
            column = column.cast(arrow.float64())
        arrays.append(column.to_numpy(zero_copy_only=False))
    if not arrays:
        return np.empty((n_rows, 0))
    small = all(array.dtype == np.float32 for array in arrays)
    return np.column_stack(arrays).astype(np.float32 if small else np.float64, copy=False)


def open_parquet(path: Path, options: TableOptions) -> ArrowTable:
    """Open a Parquet file."""
    arrow = import_pyarrow()

    @contextmanager
    def explain_damage() -> Iterator[None]:
        try:
            yield
        except (arrow.ArrowException, OSError) as error:
            words = " ".join(str(error).split())[:300]
            raise ValueError(f"{path}: not a readable Parquet file ({words})") from None

    def read(names: list[str]) -> Iterator[Any]:
        with explain_damage():
            file = arrow.parquet.ParquetFile(path)
            # Equal rows take next to no room in such a file: it may unpack to more than a disk.
            check_disk_space(file.metadata.num_rows * len(names) * 4)
            rows = max(1, min(_NUMBERS // max(len(names), 1), _ROWS))
            yield from file.iter_batches(columns=names, batch_size=rows)

    with explain_damage():
        return ArrowTable(str(path), arrow.parquet.read_schema(path), read, options)


def open_arrow(source: Any, options: TableOptions) -> ArrowTable:
    """Open a pyarrow Table, or an object with `__arrow_c_stream__`, such as a polars frame."""
    arrow, table = import_pyarrow(), source
    if not hasattr(source, "to_batches"):
        try:
            table = arrow.RecordBatchReader.from_stream(source).read_all()
        except (arrow.ArrowException, TypeError) as error:
            words = str(error).split("\n")[0]
            raise ValueError(
                f"source: found {type(source).__name__}, whose Arrow stream is not a table "
                f"({words})"
            ) from None

    def read(names: list[str]) -> Iterable[Any]:
        return table.select(names).to_batches()

    return ArrowTable("source", table.schema, read, options)
