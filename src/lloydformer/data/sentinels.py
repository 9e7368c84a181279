"""Numbers that stand for a missing value, such as -999: far from all others, and repeated.

Loggers and surveys write them. As values they would be a cluster of their own, or stretch a column
so that nothing else in it counts. They are asked about, as a far value may also be a true one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# 99, -999, 8888, 77777; the ends of integers; fill values of NetCDF and of weather services.
_REPEATED = [float(digit * length) for digit in "9876" for length in range(2, 11)]
_OTHERS = [32767.0, 32768.0, 2147483647.0, 2147483648.0, 1e20, 1e30, 1e36, 9.96921e36, 999.9]
_OTHERS += [9999.9, 99999.9]
NUMBERS = np.array(sorted({sign * form for form in (*_REPEATED, *_OTHERS) for sign in (1, -1)}))
# In days since 1970-01-01: 0001-01-01, 1899-12-30 and the next two days, 1970-01-01, 9999-12-31.
DATES = np.array([-719162.0, -25569.0, -25568.0, -25567.0, 0.0, 2932896.0])
# Different ones in a column: not asked, not known, not measured.
_MOST = 4


@dataclass(frozen=True)
class FoundSentinel:
    """A number that may stand for a missing value.

    Attributes
    ----------
    column : int
        The column of points.
    value : float
        The number.
    count : int
        Rows that have it.
    least, largest : float
        The ends of all other values.
    """

    column: int
    value: float
    count: int
    least: float
    largest: float


def find_sentinels(
    points: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    columns: Sequence[int],
    forms: np.ndarray = NUMBERS,
) -> list[FoundSentinel]:
    """Return the sentinels of some columns.

    One of `forms` is a sentinel if it is in two rows or more (of one column, or of several that
    have it), and farther from all other values than these are from each other. From -99 down, it
    needs no distance if no other value is negative.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The rows.
    ends : tuple of ndarray of shape (d,)
        The least and the largest values: only columns that end with one of the forms are read.
    columns : sequence of int
        The columns.
    forms : ndarray, default=NUMBERS
        What sentinels look like, in ascending order.
    """
    suspect = _have_form(ends[0], forms) | _have_form(ends[1], forms)
    found: list[FoundSentinel] = []
    for column in columns:
        if suspect[column]:
            found += _find_in_column(points[:, column], column, forms)
    counts: dict[float, int] = {}
    for sentinel in found:
        counts[sentinel.value] = counts.get(sentinel.value, 0) + sentinel.count
    return [sentinel for sentinel in found if counts[sentinel.value] > 1]


def _find_in_column(values: np.ndarray, column: int, forms: np.ndarray) -> list[FoundSentinel]:
    present = values[np.isfinite(values)]
    candidates: list[float] = []
    for _ in range(_MOST):
        ends = np.unique([present.min(), present.max()])
        ends = ends[_have_form(ends, forms)]
        if not len(ends):
            break
        candidates += ends.tolist()
        present = present[~np.isin(present, ends)]
        if not len(present):
            return []  # there is nothing else
    low, high = float(present.min()), float(present.max())
    if low == high:  # two values may mean anything
        return []
    found: list[FoundSentinel] = []
    for value in sorted(candidates, key=lambda value: max(low - value, value - high)):
        gap = max(low - value, value - high)
        if gap > high - low or (value <= -99 and low >= 0):
            count = int(np.count_nonzero(values == values.dtype.type(value)))
            found.append(FoundSentinel(column, value, count, low, high))
        else:  # a value as the others
            low, high = min(low, value), max(high, value)
    return found


def _have_form(values: np.ndarray, forms: np.ndarray) -> np.ndarray:
    """Return which of these numbers have one of the forms."""
    places = np.clip(np.searchsorted(forms, values), 1, len(forms) - 1)
    # float32 has seven digits.
    with np.errstate(invalid="ignore"):
        near = np.abs(np.stack([forms[places - 1], forms[places]]) - values)
        return (near <= 1e-7 * np.abs(values)).any(axis=0)
