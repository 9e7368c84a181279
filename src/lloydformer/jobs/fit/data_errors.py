"""Errors of an estimator, reworded for a user who passed a file."""

from collections.abc import Iterator
from contextlib import contextmanager

from lloydformer.estimators.source import NoDirectionError


@contextmanager
def errors_about(data: str) -> Iterator[None]:
    """Replace X in an estimator's ValueError by the file's name; count rows from 1."""
    try:
        yield
    except NoDirectionError as error:
        raise ValueError(
            f"{data}: found only zeros in row {error.row + 1}, counted from 1, which has no "
            "direction; remove rows of zeros, or use an algorithm that compares positions"
        ) from None
    except ValueError as error:
        raise ValueError(f"{data}: {str(error).removeprefix('X: ')}") from None
