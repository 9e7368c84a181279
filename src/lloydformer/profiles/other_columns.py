"""Columns that were not clustered, as numbers, dates or words, for the profiles of clusters."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lloydformer.profiles.words import format_number

# Names of columns that usually hold numbers of rows, customers or the like.
_ID = re.compile(r"(^|[_\W])(id|nr|no|index|key|uuid)$|[a-z]Id$|ID$", re.IGNORECASE)
# A word that fewer rows have says little; with more different words than this a column names rows.
_MOST_WORDS = 100


@dataclass(frozen=True)
class OtherColumn:
    """A column of n rows: numbers (NaN is missing), or codes of words (-1 is missing).

    `words` is None for numbers. `is_date` is True if numbers count days since 1970-01-01.
    """

    name: str
    values: np.ndarray
    words: tuple[str, ...] | None = None
    is_date: bool = False

    def format(self, value: float) -> str:
        """Return a value of the column as text."""
        if np.isnan(value):
            return ""
        if self.is_date:
            return str(np.datetime64(round(value), "D"))
        return format_number(value, 3)


def read_other_columns(extra: Any, n_rows: int) -> tuple[tuple[OtherColumn, ...], tuple[str, ...]]:
    """Return the columns, and the names of those that are left out as they name the rows.

    Parameters
    ----------
    extra : data frame, mapping of names to columns, pandas Series, or None
        The columns.
    n_rows : int
        Values that each column must have.
    """
    found, left_out = list[OtherColumn](), list[str]()
    for name, values in _columns_of(extra):
        if values.shape != (n_rows,):
            raise ValueError(
                f"extra: column {name!r} has the shape {values.shape}; pass one value for each of "
                f"the {n_rows:,} rows of X"
            )
        column = _read_column(name, values)
        if column is None:
            left_out.append(name)
        else:
            found.append(column)
    return tuple(found), tuple(left_out)


def _columns_of(extra: Any) -> Iterator[tuple[str, np.ndarray]]:
    if extra is None:
        return
    if not isinstance(extra, Mapping) and hasattr(extra, "to_frame") and hasattr(extra, "name"):
        extra = {extra.name if extra.name is not None else "extra": extra}  # a Series
    if isinstance(extra, Mapping):
        names = list(extra)
    elif hasattr(extra, "columns") and hasattr(extra, "__getitem__"):
        names = list(getattr(extra, "column_names", extra.columns))  # of pyarrow, of others
    else:
        raise ValueError(
            f"extra: found {type(extra).__name__}; pass a data frame, or a dict of columns by name"
        )
    for name in names:
        column = extra[name]
        values = column.filled(np.nan) if isinstance(column, np.ma.MaskedArray) else column
        yield str(name), np.asarray(values)


def _read_column(name: str, values: np.ndarray) -> OtherColumn | None:
    """Return a column; None if its values are names of rows."""
    if values.dtype.kind == "M":
        days = values.astype("datetime64[s]").astype(np.int64) / 86400.0
        return OtherColumn(name, np.where(np.isnat(values), np.nan, days), is_date=True)
    if values.dtype.kind == "O" and all(_is_number(value) for value in values):
        values = np.array([np.nan if _is_missing(v) else float(v) for v in values])
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
        numbers[~np.isfinite(numbers)] = np.nan
        return None if _names_rows(name, numbers) else OtherColumn(name, numbers)
    if values.dtype.kind == "b":
        return OtherColumn(name, values.astype(np.int64), words=("False", "True"))
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    texts, codes = np.unique(values[~missing].astype(str), return_inverse=True)
    if len(texts) > min(_MOST_WORDS, max(2, len(codes) // 2)):
        return None
    every = np.full(len(values), -1, dtype=np.int64)
    every[~missing] = codes
    return OtherColumn(name, every, words=tuple(texts.tolist()))


def _is_missing(value: Any) -> bool:
    # NaN, NaT and pandas' NA do not equal themselves; NA has no truth value either.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_number(value: Any) -> bool:
    return _is_missing(value) or (hasattr(value, "__float__") and not isinstance(value, bool))


def _names_rows(name: str, values: np.ndarray) -> bool:
    """Return True for distinct whole numbers that count rows, or whose column is called an id."""
    whole = len(values) > 1 and bool((values == np.round(values)).all())
    if not whole or len(np.unique(values)) < len(values):
        return False
    steps = np.diff(values)
    return bool((steps == 1).all() or (steps == -1).all() or _ID.search(name))
