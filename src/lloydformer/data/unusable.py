"""Values that are not numbers: dates, words, and rows that are not computed yet.

scikit-learn turns dates of Arrow, polars and NumPy into microseconds without a word, and does not
name the column of a word.
"""

import datetime
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from lloydformer.numerics.checks import ArgumentError

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def refuse_lazy(name: str, X: Any) -> None:
    """Raise `ValueError` for a LazyFrame: computing its rows may take long, so the user decides."""
    if type(X).__name__ == "LazyFrame":
        raise ArgumentError(
            name, f"found a LazyFrame, whose rows are not computed yet; pass {name}.collect()"
        )


def refuse_dates(X: Any) -> None:
    """Raise `ValueError` for columns of dates or times, by their types."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            since = "(X - X.min())" if X.dtype.kind == "M" else "X"
            raise ArgumentError(
                "X",
                f"found dates or times ({X.dtype}); convert them to numbers, for example to days "
                f"with {since} / np.timedelta64(1, 'D')",
            )
        return
    for column, kind in _date_columns(X):
        raise _date_error(column, str(kind))


def _date_error(column: object, found: str) -> ArgumentError:
    return ArgumentError(
        "X",
        f"column {column!r} has dates or times ({found}), whose unit would decide all distances; "
        "convert it to numbers, for example to days or to the hour of the day, or leave it out",
    )


def _date_columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the names and types of the columns of a frame that hold dates or times."""
    if hasattr(X, "iloc"):  # pandas; a series has no columns
        pairs = zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False)
        yield from ((name, kind) for name, kind in pairs if getattr(kind, "kind", "O") in "mM")
    elif hasattr(X, "to_batches"):  # a table of pyarrow
        from pyarrow.types import is_temporal

        pairs = zip(X.schema.names, X.schema.types, strict=True)
        yield from ((name, kind) for name, kind in pairs if is_temporal(kind))
    elif hasattr(X, "get_columns"):  # polars
        yield from ((each.name, each.dtype) for each in X.get_columns() if each.dtype.is_temporal())


def explain_words(X: Any) -> ArgumentError | None:
    """Return the error for the first value that is not a number, after a conversion has failed.

    None if there is no such value, or if it is an object of another kind in an array.
    """
    found = ((name, row, v) for name, column in _columns(X) for row, v in enumerate(column))
    for name, row, value in found:
        if _is_number(value):
            continue
        if isinstance(value, _DATES):
            return _date_error(name, repr(value))
        is_array = isinstance(X, np.ndarray | list | tuple)
        if is_array and not isinstance(value, str):
            return None  # scikit-learn's words for it are part of what it tests in estimators
        repair = "leave it out"
        if isinstance(value, str):
            encoder = "sklearn.preprocessing.OneHotEncoder"
            if isinstance(name, str):
                encoder = f"lf.data.open_dataset(X, one_hot=({name!r},))"
            repair += f", or make columns of 0 and 1 of its words with {encoder}"
        shown = reprlib.repr(value)
        return ArgumentError("X", f"column {name!r} is not numeric (row {row}: {shown}); {repair}")
    return None


def _columns(X: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Yield the names of the columns, or their numbers (from 0), and their values."""
    if hasattr(X, "iloc"):
        for i, name in enumerate(getattr(X, "columns", ())):
            yield name, X.iloc[:, i]
    elif hasattr(X, "to_batches"):
        for name, column in zip(X.schema.names, X.columns, strict=True):
            yield name, column.to_pylist()
    elif hasattr(X, "get_columns"):
        for column in X.get_columns():
            yield column.name, column.to_list()
    else:
        try:
            array = np.asarray(X, dtype=object)
        except ValueError:  # rows of different lengths
            return
        if array.ndim == 2:
            yield from enumerate(array.T)


def _is_number(value: Any) -> bool:
    """Return True for what becomes a float, or is missing."""
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
