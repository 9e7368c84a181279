"""Errors of an estimator, reworded for a user who passed a file."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lloydformer.data.opened import OpenedTable, rows_in_table
from lloydformer.estimators.source import NoDirectionError


@contextmanager
def errors_about(data: str, table: OpenedTable | None) -> Iterator[None]:
    """Replace X in an estimator's ValueError by the file's name, and a row by its place there."""
    try:
        yield
    except NoDirectionError as error:
        place = f"row {error.row + 1}"
        if table is not None:
            row = rows_in_table(np.array([error.row]), table.dropped)[0]
            place = table.source.place(int(row))
        raise ValueError(
            f"{data}: found only zeros in {place}, counted from 1, which has no direction; remove "
            "rows of zeros, or use an algorithm that compares positions"
        ) from None
    except ValueError as error:
        raise ValueError(with_name(data, str(error))) from None


def with_name(data: str, error: str) -> str:
    """An error of a fit with the name of the data, or of the option that it is about.

    >>> with_name("a.csv", "X: found NaN"), with_name("a.csv", "checkpoint: leave it at None")
    ('a.csv: found NaN', '--checkpoint: leave it out')
    """
    if error.startswith("checkpoint: "):
        return f"--{error.replace('leave it at None', 'leave it out')}"
    return f"{data}: {error.removeprefix('X: ')}"
