"""A table opened with the user's options: its points, and what was done to get them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lloydformer.data.array_source import ArraySource
from lloydformer.data.choosing import choose
from lloydformer.data.columns import ColumnFinder
from lloydformer.data.conversion import Conversion
from lloydformer.data.files import open_file
from lloydformer.data.missing import (
    MissingValues,
    fill,
    refuse_missing,
    refuse_unknown,
    with_fills,
)
from lloydformer.data.openml import read_openml
from lloydformer.data.paths import PREFIX, STANDARD_INPUT, path_of
from lloydformer.data.scratch import concatenate, scratch_array
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import TableSource

_ROWS = 1 << 16


@dataclass(frozen=True)
class OpenedTable:
    """Points (n, d), and how they came about.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The points, finite numbers.
    conversion : Conversion
        What they are made of.
    notes : tuple of str
        What was recognised, left out, dropped and filled in.
    dropped : ndarray of int
        Rows of the table that have no point, counted from 0.
    source : TableSource
        The table.
    id_column : str, optional
        The column that names the rows.
    """

    points: np.ndarray
    conversion: Conversion
    notes: tuple[str, ...]
    dropped: np.ndarray
    source: TableSource
    id_column: str | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table, those that were dropped included."""
        return len(self.points) + len(self.dropped)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns of points; None if those of the table have none."""
        return self.conversion.labels if self.conversion.named else None

    def ids(self) -> Iterator[np.ndarray]:
        """The names of the rows, block by block, as the file has them."""
        assert self.id_column is not None
        finder = ColumnFinder(self.source.name, self.source.names, self.source.width)
        for batch in self.source.batches([], finder.indices([self.id_column])):
            yield np.array(["" if text is None else str(text) for text in batch.texts[0]] + [""],
                           dtype=object)[:-1]  # fmt: skip


def open_table(
    name: str, options: TableOptions, conversion: Conversion | None = None
) -> OpenedTable:
    """Open a file, a folder, standard input or a set of OpenML.

    `conversion`: that of a fit, to be applied again; by default it is chosen by the options.
    """
    expected = [f.column for f in conversion.features] if conversion is not None else None
    source, notes = _source(name, options, expected)
    return convert(source, options, conversion, notes)


def _source(
    name: str, options: TableOptions, expected: Sequence[str] | None
) -> tuple[TableSource, list[str]]:
    if name.startswith(PREFIX):
        table = read_openml(name)
        return ArraySource(name, table.points, table.names), []
    return open_file(Path(name) if name == STANDARD_INPUT else path_of(name), options, expected)


def convert(
    source: TableSource,
    options: TableOptions,
    conversion: Conversion | None = None,
    notes: Sequence[str] = (),
) -> OpenedTable:
    """The points of a table; raises ValueError if it has none, or missing or infinite values."""
    known, said = conversion is not None, list(notes)
    if conversion is None:
        conversion, more = choose(source, options)
        said += [f"{source.name}: {note}" for note in more]
    else:
        conversion = conversion.for_table(source)
    if known and options.missing == "median":
        refuse_unknown(source, conversion)
    points, found = _read(source, conversion, options)
    _refuse_infinite(source, found)
    if options.missing == "error":
        refuse_missing(source, found, options, known)
    if len(points) == 0:
        raise ValueError(_no_rows(source.name, found))
    dropped = np.concatenate([*found.dropped, np.empty(0, dtype=np.int64)])
    if options.missing == "median" and (found.first or not known):
        if not known:
            conversion = with_fills(source.name, points, conversion)
        points = _filled(points, conversion, found)
    said += _about_missing(source.name, found, options)
    return OpenedTable(points, conversion, tuple(said), dropped, source, options.id_column)


def _read(
    source: TableSource, conversion: Conversion, options: TableOptions
) -> tuple[np.ndarray, MissingValues]:
    chosen = conversion.indices(source)
    found = MissingValues(conversion, drop=options.missing == "drop")
    whole = source.whole(chosen.numbers) if isinstance(source, ArraySource) else None
    if whole is None:
        batches = source.batches(chosen.numbers, chosen.texts)
        return concatenate(found.passing(map(conversion.points, batches))), found
    cut = (whole[i : i + _ROWS] for i in range(0, len(whole), _ROWS))
    for _ in found.passing(cut):  # an array without missing values stays where it is
        pass
    if not found.drop or found.first is None:
        return whole, found
    again = MissingValues(conversion, drop=True)
    batches = source.batches(chosen.numbers, chosen.texts)
    return concatenate(again.passing(map(conversion.points, batches))), again


def _filled(points: np.ndarray, conversion: Conversion, found: MissingValues) -> np.ndarray:
    if found.first is None:
        return points
    copy = scratch_array(*points.shape, dtype=points.dtype)
    for start in range(0, len(points), _ROWS):
        copy[start : start + _ROWS] = points[start : start + _ROWS]
    fill(copy, conversion)
    return copy


def _no_rows(name: str, found: MissingValues) -> str:
    if found.first is None:
        return f"{name}: found no rows; points are rows of numbers"
    lacking = ", ".join(f"{column} lacks {count:,}" for column, count in found.lacking[:6])
    return (f"{name}: all {found.n_rows:,} rows have a missing value ({lacking}); leave out the "
            "columns that lack most")  # fmt: skip


def rows_in_table(rows: np.ndarray, dropped: np.ndarray) -> np.ndarray:
    """The rows of the table that became these rows of points, all counted from 0.

    >>> rows_in_table(np.array([0, 1, 2]), np.array([0, 2]))
    array([1, 3, 4])
    """
    before = dropped - np.arange(len(dropped))  # points before each row that was dropped
    return rows + np.searchsorted(before, rows, side="right")


def _refuse_infinite(source: TableSource, found: MissingValues) -> None:
    if found.infinite is not None:
        row, column, value = found.infinite
        label = found.conversion.labels[column]
        raise ValueError(
            f"{source.name}: {source.place(row)}, column "
            f"{label if found.conversion.named else f'number {label[1:]}'}: found {value}; fill in "
            "or drop rows with missing or infinite values"
        )


def _about_missing(name: str, found: MissingValues, options: TableOptions) -> list[str]:
    if found.first is None:
        return []
    lacking = ", ".join(f"{column} lacks {count:,}" for column, count in found.lacking[:6])
    if options.missing == "drop":
        count = sum(map(len, found.dropped))
        return [f"{name}: {count:,} of {found.n_rows:,} rows with missing values dropped "
                f"({lacking}); their labels are empty"]  # fmt: skip
    return [f"{name}: missing values filled in with the median, or the most common category "
            f"({lacking})"]  # fmt: skip
