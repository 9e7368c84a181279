"""`lf.data.open_dataset`: any source of points as re-readable blocks."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lloydformer.data.array_api import tensor_from_numpy
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_choice import (
    SURVEYED,
    adapt_notations,
    add_notations,
    choose_by_name,
    choose_columns,
)
from lloydformer.data.column_scales import Scale
from lloydformer.data.column_statistics import Scaling, fit_scaling
from lloydformer.data.conversion import (
    ROWS,
    Conversion,
    MissingValues,
    fill_missing,
    find_fills,
    refuse_unknown_words,
)
from lloydformer.data.csv_table import open_csv
from lloydformer.data.mapped_files import concatenate
from lloydformer.data.notation_choice import describe_conversions
from lloydformer.data.numpy_files import map_npy, read_npz
from lloydformer.data.openml import read_openml
from lloydformer.data.paths import (
    KINDS,
    PREFIX,
    SHEETS,
    STANDARD_INPUT,
    check_path,
    file_kind,
    resolve_path,
)
from lloydformer.data.scale_choice import Choice
from lloydformer.data.special_numbers import (
    choose_compact_dates,
    choose_sentinels,
    describe_sentinels,
    find_compact_dates,
    find_sentinels,
)
from lloydformer.data.spreadsheets import open_sheet
from lloydformer.data.table import (
    ColumnSurvey,
    NotNumericError,
    Table,
    TableBatch,
    object_array,
)
from lloydformer.data.table_options import Missing, Sentinels, TableOptions
from lloydformer.data.text_file import TextFile
from lloydformer.data.typed_tables import ArrayTable, FrameTable, open_arrow, open_parquet
from lloydformer.data.unusable import refuse_lazy


def open_dataset(
    source: str | os.PathLike[str] | np.ndarray | Any,
    *,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
    exclude: Sequence[str] = (),
    one_hot: Sequence[str] = (),
    numeric_only: bool = False,
    missing: Missing = "error",
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    thousands: str | None = None,
    dates: Literal["days", "parts", "drop", "keep"] | None = None,
    date_order: Literal["dmy", "mdy"] | None = None,
    na_values: Sequence[str | float] = (),
    skip_rows: int | str | None = None,
    comment: str | None = None,
    sentinels: Sentinels | None = None,
) -> TensorBlocks:
    """Open points that every estimator's `fit` and `predict` accept.

    Data may be larger than memory. NPY files are memory-mapped, and must not change while they
    are in use. Tables larger than 256 MB are copied to a scratch file in the folder for temporary
    files (TMPDIR), as are chosen columns of an NPY file of that size.

    Parameters
    ----------
    source : str, path, array, data frame or Arrow table
        A .csv, .tsv, .txt, .xlsx, .parquet, .npy or .npz file, a text compressed as .gz, .zst,
        .bz2 or .xz, or a folder of these; or "-", standard input; or a NumPy array, a pandas or
        polars data frame, a pyarrow Table or another object with the method
        ``__arrow_c_stream__``; or a data set of OpenML: "openml:NAME",
        "openml:NAME@VERSION" or "openml:NUMBER". It is fetched once, and kept in the cache folder
        with its version and hash. If the environment variable LLOYDFORMER_DATA names a folder with
        NAME.npz, that is used in place of OpenML; nothing else uses the network.
    columns : sequence of str or None, default=None
        Columns to use: names, or numbers counted from 1. None for all.
    scale : {"auto", "standard", "minmax", "robust", "log", "rank", "clip"} or None, default=None
        Scale the columns as `lloydformer.Scaler` does; with "auto" each by the method that suits
        it, and columns of `one_hot` so that they weigh together as one column. The scaling is
        computed once, applied as rows are read, kept with the model and undone on its centers.
    exclude : sequence of str, default=()
        Columns to leave out.
    one_hot : sequence of str, default=()
        Columns of words, at most 100 different ones each, to convert to a column of 0 and 1 for
        each word.
    numeric_only : bool, default=False
        Leave out columns that hold anything but numbers and missing values.
    missing : {"error", "drop", "median", "ignore", "impute"}, default="error"
        What to do with missing values: raise an error, leave out their rows, or fill in the median
        of the column (for `one_hot` the most common word). "ignore" and "impute" keep them as NaN,
        for `KMeans`, `RelocatingKMeans` and `TrimmedKMeans` with the same value of `missing`.
    sep, decimal, encoding : str or None, default=None
        Format of a text: the separator of values, "." or "," in numbers, and the encoding. None:
        detected in its beginning.
    header : bool or None, default=None
        True if the first line of a text has the names of the columns. None: True if it holds words,
        False if it holds numbers; a line that may be either is an error.
    thousands : {",", ".", " ", "'"} or None, default=None
        The mark between thousands in columns of numbers such as 1,234, which would be 1.234 with a
        decimal comma. None raises an error for such columns.
    dates : {"days", "parts", "drop", "keep"} or None, default=None
        What a column of dates or times becomes: days since 1970-01-01 (of times, parts of a day),
        or a column for each of year, month, day, weekday (1 is Monday) and hour, or nothing. "keep"
        leaves numbers such as 20240105 as they are. None raises an error if there is one.
    date_order : {"dmy", "mdy"} or None, default=None
        The order of dates such as 03/04/2024. None raises an error if that matters.
    na_values : sequence of str or float, default=()
        More texts and numbers that mean a missing value.
    skip_rows : int, str or None, default=None
        Lines of a text or a sheet to leave out: the first `skip_rows`, or "2:2,5:7" for line 2 and
        lines 5 to 7, counted from 1.
    comment : str or None, default=None
        The character at which comments begin in a text. None: lines that begin with #, if they
        come first or have another number of values.
    sentinels : {"missing", "keep"} or None, default=None
        What repeated numbers such as -999 are that are far from all others: missing values, or
        values. None raises an error if there are some.

    Returns
    -------
    TensorBlocks
        Rows that can be read repeatedly, block by block; `points` is the whole tensor, and `notes`
        say what was recognised, converted and left out.

    Raises
    ------
    ValueError
        If the source is not found, not readable or not numeric, or if it has missing or infinite
        values.

    See Also
    --------
    lloydformer.KMeans.fit : Fit on opened data.

    Examples
    --------
    >>> import numpy as np
    >>> import lloydformer as lf
    >>> data = lf.data.open_dataset(np.array([[0.0, 5.0], [1.0, 7.0], [4.0, 9.0]]), columns=["2"])
    >>> data.points
    tensor([[5.],
            [7.],
            [9.]], dtype=torch.float64)
    >>> lf.KMeans(1, random_state=0).fit(data).cluster_centers_
    array([[7.]])
    """
    options = TableOptions(
        columns=None if columns is None else tuple(columns),
        exclude=tuple(exclude),
        one_hot=tuple(one_hot),
        numeric_only=numeric_only,
        missing=missing,
        sep=sep,
        decimal=decimal,
        encoding=encoding,
        header=header,
        thousands=thousands,
        dates=dates,
        date_order=date_order,
        na_values=tuple(map(str, na_values)),
        skip_rows=None if skip_rows is None else str(skip_rows),
        comment=comment,
        sentinels=sentinels,
    )
    opened = convert(_open_source(source, options))
    return to_blocks(opened, None if scale is None else scale_columns(opened, scale))


def scale_columns(opened: "OpenedTable", scale: Scale) -> Scaling:
    """Compute the scaling of an opened table; the columns of a column of words weigh as one."""
    features = zip(opened.conversion.starts, opened.conversion.features, strict=True)
    words = [(start, f.width) for start, f in features if f.categories and f.width > 1]
    return fit_scaling(tensor_from_numpy(opened.points), scale, words)


def to_blocks(opened: "OpenedTable", scaling: Scaling | None = None) -> TensorBlocks:
    """Return the points of an opened table as blocks."""
    points = tensor_from_numpy(opened.points)
    mapped = isinstance(opened.points, np.memmap)
    # Rows that are left as they are have shorter ways through the engines.
    scaling = None if scaling is None or scaling.is_identity else scaling
    return TensorBlocks(
        points, scaling=scaling, names=opened.names, mapped=mapped, notes=opened.notes
    )


@dataclass(frozen=True)
class OpenedTable:
    """Points (n, d), and how they came about.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        The points, finite numbers.
    conversion : Conversion
        The features they are made of.
    notes : tuple of str
        What was detected, left out, dropped and filled in, for the user.
    dropped : ndarray of int
        Rows of the table that have no point, counted from 0.
    source : Table
        The table.
    choices : tuple of Choice
        How each column of points is scaled, and why; empty if they are not.
    remembered_id : str or None
        The column that named the rows of a fit, if the options name none.
    """

    points: np.ndarray
    conversion: Conversion
    notes: tuple[str, ...]
    dropped: np.ndarray
    source: Table
    choices: tuple[Choice, ...] = ()
    remembered_id: str | None = None

    @property
    def id_column(self) -> str | None:
        """The column that names the rows."""
        return self.source.options.id_column or self.remembered_id

    @property
    def n_rows(self) -> int:
        """Rows of the table, those that were dropped included."""
        return len(self.points) + len(self.dropped)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns of points; None if those of the table have none."""
        return self.conversion.labels if self.conversion.named else None

    def ids(self) -> Iterator[np.ndarray]:
        """Yield the names of the rows, block by block, as the file has them."""
        assert self.id_column is not None
        for (names,) in self.texts(self.source.find([self.id_column])):
            yield names

    def texts(self, columns: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Yield the values of some columns, block by block, as the file has them."""
        for batch in self.source.batches([], columns):
            yield [
                object_array(["" if text is None else str(text) for text in texts])
                for texts in batch.texts
            ]


def rows_in_table(rows: np.ndarray, dropped: np.ndarray) -> np.ndarray:
    """Return the rows of the table that became these rows of points, all counted from 0.

    >>> rows_in_table(np.array([0, 1, 2]), np.array([0, 2]))
    array([1, 3, 4])
    """
    before = dropped - np.arange(len(dropped))  # points before each row that was dropped
    return rows + np.searchsorted(before, rows, side="right")


def open_table(
    name: str, options: TableOptions, conversion: Conversion | None = None
) -> OpenedTable:
    """Open a file, a folder, standard input or a set of OpenML.

    `conversion`: that of a fit, to be applied again; by default it is chosen by the options.
    """
    if conversion is not None:
        options = replace(
            options,
            expected=tuple(f.column for f in conversion.features),
            na_values=tuple(dict.fromkeys((*conversion.na_values, *options.na_values))),
            comment=conversion.comment if options.comment is None else options.comment,
            expected_decimal=conversion.decimal,
        )
    return convert(_open_source(name, options), conversion)


def _open_source(source: Any, options: TableOptions) -> Table:
    refuse_lazy("source", source)
    if isinstance(source, np.ma.MaskedArray):  # masked values are missing ones
        source = source if source.dtype.kind == "f" else source.astype(np.float64)
        source = source.filled(np.nan)
    if isinstance(source, np.ndarray):
        return ArrayTable("source", source, options)
    if hasattr(source, "iloc"):
        return FrameTable(source, options)
    if hasattr(source, "to_batches") or hasattr(source, "__arrow_c_stream__"):
        return open_arrow(source, options)
    if not isinstance(source, str | os.PathLike):
        raise ValueError(
            f"source: found {type(source).__name__}; pass a path, an array, a data frame, an Arrow "
            "table or openml:NAME"
        )
    name = str(source)
    if name.startswith(PREFIX):
        return read_openml(name, options)
    return open_file(Path(name) if name == STANDARD_INPUT else resolve_path(name), options)


def open_file(path: Path, options: TableOptions) -> Table:
    """Open a file, all files of a folder, or standard input."""
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if file_kind(f) in KINDS)
        if not files:
            raise ValueError(f"{path}: no .csv, .parquet, .npy or .npz file in this folder")
        return FolderTable(path, [open_file(file, options) for file in files])
    if str(path) != STANDARD_INPUT:
        check_path(path)
    kind = file_kind(path)
    if kind == ".parquet":
        return open_parquet(path, options)
    if kind in (".npy", ".npz"):
        read = map_npy if kind == ".npy" else read_npz
        return ArrayTable(str(path), read(path), options)
    if kind in SHEETS:
        return open_sheet(path, options)
    return open_csv(TextFile.at(path), options, kind)


class FolderTable(Table):
    """The tables of a folder one after the other; columns are found in each by their names."""

    def __init__(self, path: Path, tables: list[Table]) -> None:
        first = tables[0]
        super().__init__(str(path), first.names, first.width, first.options)
        self.tables, self.notes = tables, first.notes
        self._counts: list[int] = []  # rows of the tables that have been read

    @property
    def index_columns(self) -> frozenset[str]:
        return self.tables[0].index_columns

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        self._counts = []
        for table in self.tables:
            count = 0
            for batch in table.batches(self._find_in(table, numbers), self._find_in(table, texts)):
                count += len(batch)
                yield batch
            self._counts.append(count)

    def _find_in(self, table: Table, columns: Sequence[int]) -> list[int]:
        """Return the indices of these columns of the first table in another one."""
        if table.names == self.names and table.width == self.width:
            return list(columns)
        wanted = [self.names[i] for i in columns] if self.names is not None else []
        if self.names is None or table.names is None or not set(wanted) <= set(table.names):
            raise ValueError(
                f"{table.name}: its columns differ from those of "
                f"{Path(self.tables[0].name).name}; put files with the same columns in a folder, "
                "or choose columns"
            )
        return table.find(wanted)

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """Count in all tables: a column is numeric if it is so in each."""
        found = self.tables[0].survey(n_rows)
        for table in self.tables[1:]:
            for own, other in zip(found, table.survey(n_rows), strict=False):
                own.numbers += other.numbers
                own.missing += other.missing
                own.n_words += other.n_words
                own.place, own.word = own.place or other.place, own.word or other.word
        return found

    def locate(self, row: int) -> str:
        for table, count in zip(self.tables, [*self._counts, 0], strict=False):
            if row < count or table is self.tables[-1]:
                return f"{Path(table.name).name}: {table.locate(row)}"
            row -= count
        raise IndexError(row)


def convert(table: Table, conversion: Conversion | None = None) -> OpenedTable:
    """Convert a table to points.

    `conversion`: that of a model, whose columns and fills are used; by default both are chosen.

    Raises `ValueError` if the table has no rows, infinite values, or missing values that the
    options do not allow or for which the model has no fills.
    """
    known, policy, notes = conversion is not None, table.options.missing, [*table.notes]
    if conversion is None:
        conversion, more, converted = choose_columns(table)
        notes += [f"{table.name}: {note}" for note in more]
    else:
        chosen = table.options.columns
        conversion = (
            conversion.fit_to_table(table)
            if chosen is None
            else conversion.replace_columns(table, choose_by_name(table))
        )
        conversion, converted = adapt_notations(table, conversion)
        keeps = conversion.keeps_sentinels or table.options.sentinels == "keep"
        conversion = replace(conversion, na_values=table.options.na_values, keeps_sentinels=keeps)
        if policy == "median":
            refuse_unknown_words(table, conversion)
    for n_rows in (SURVEYED, None):
        try:
            points, missing = _read_points(table, conversion, drop=policy == "drop")
            break
        except NotNumericError:  # not all columns are plain numbers
            conversion, more_converted = add_notations(table, conversion, n_rows, known)
            converted |= more_converted
    else:
        points, missing = _read_points(table, conversion, drop=policy == "drop")
    # Numbers that no file has for numbers: dates, and what stands for a missing value.
    if not known and (compact := find_compact_dates(points, missing, conversion)):
        conversion, more_converted = choose_compact_dates(table, points, conversion, compact)
        converted |= more_converted
        if more_converted:
            points, missing = _read_points(table, conversion, drop=policy == "drop")
    if found := find_sentinels(points, missing, conversion):
        conversion = choose_sentinels(table, conversion, found)
        for name, words in describe_sentinels(conversion, found).items():
            said = [converted[name]] if name in converted else []
            converted[name] = ", ".join([*said, f"missing: {words}"])
        points, missing = _read_points(table, conversion, drop=policy == "drop")
    if converted:
        _add_conversions(table, notes, describe_conversions(converted))
    missing.refuse(table, known)
    if len(points) == 0 and missing.first is None:
        raise ValueError(f"{table.name}: found no rows; points are rows of numbers")
    if len(points) == 0:
        raise ValueError(
            f"{table.name}: all {missing.n_rows:,} rows have a missing value ({missing.summary}); "
            "leave out the columns that lack most"
        )
    dropped = np.concatenate([*missing.dropped, np.empty(0, dtype=np.int64)])
    if policy == "median" and not known:
        conversion = find_fills(table.name, points, conversion)
    if policy == "median" and missing.first is not None:
        if any(feature.fill is None for feature in conversion.features):
            spell = table.options.spell
            raise ValueError(
                f"{table.name}: the model has no medians to fill in missing values "
                f"({missing.summary}); fit it with {spell('missing', 'median')}, or use "
                f"{spell('missing', 'drop')}"
            )
        points = fill_missing(points, conversion)
        notes.append(
            f"{table.name}: missing values filled in with the median, or the most common category "
            f"({missing.summary})"
        )
    if len(dropped):
        notes.append(
            f"{table.name}: {len(dropped):,} of {missing.n_rows:,} rows with missing values "
            f"dropped ({missing.summary}); their labels are empty"
        )
    return OpenedTable(points, conversion, tuple(notes), dropped, table)


def _read_points(
    table: Table, conversion: Conversion, drop: bool
) -> tuple[np.ndarray, MissingValues]:
    numbers, texts = conversion.find_columns(table)
    whole = table.whole(numbers) if isinstance(table, ArrayTable) else None
    if conversion.na_numbers or any(feature.sentinels for feature in conversion.features):
        whole = None
    missing = MissingValues(conversion, drop)
    if whole is not None:  # an array without missing values stays where it is
        deque(missing.filter(whole[i : i + ROWS] for i in range(0, len(whole), ROWS)), maxlen=0)
        if not drop or missing.first is None:
            return whole, missing
        missing = MissingValues(conversion, drop)
    batches = map(conversion.to_points, table.batches(numbers, texts))
    return concatenate(missing.filter(batches)), missing


def _add_conversions(table: Table, notes: list[str], words: str) -> None:
    """Say what was converted, in the note on what was recognised if there is one."""
    for i, note in enumerate(notes):
        if note.startswith(f"{table.name}: recognised "):
            notes[i] = f"{note}; converted: {words}"
            return
    notes.insert(0, f"{table.name}: converted: {words}")
