"""Numbers that mean something else: dates such as 20240105, and -999 for a missing value.

Loggers and surveys write -999 and similar numbers. As values they would be a cluster of their own,
or stretch a column so that nothing else in it counts. Dates as numbers make the last day of a year
and the first of the next 8870 apart. Both are asked about, as they may be true numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lloydformer.data.conversion import Conversion, MissingValues
from lloydformer.data.dates import read_compact_dates, varying_parts
from lloydformer.data.notations import Notation
from lloydformer.data.table import Table, list_names

# 99, -999, 8888, 77777; 97, 98, 997, 9998, which surveys use beside 99 for answers that were not
# given; the ends of integers; fill values of NetCDF and of weather services.
_REPEATED = [float(digit * length) for digit in "9876" for length in range(2, 11)]
_REPEATED += [float("9" * length + digit) for digit in "678" for length in range(1, 4)]
_OTHERS = [32767.0, 32768.0, 2147483647.0, 2147483648.0, 1e20, 1e30, 1e36, 9.96921e36, 999.9]
_OTHERS += [9999.9, 99999.9]
NUMBERS = np.array(sorted({sign * form for form in (*_REPEATED, *_OTHERS) for sign in (1, -1)}))
# In days since 1970-01-01: 0001-01-01, 1899-12-30 and the next two days, 1970-01-01, 9999-12-31.
DATES = np.array([-719162.0, -25569.0, -25568.0, -25567.0, 0.0, 2932896.0])
# Different ones in a column: not asked, not known, not measured.
_MOST = 4


@dataclass(frozen=True)
class FoundSentinel:
    """A number that probably marks missing values.

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


def find_in_columns(
    points: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    columns: Sequence[int],
    forms: np.ndarray = NUMBERS,
) -> list[FoundSentinel]:
    """Return the sentinels of some columns.

    One of `forms` is a sentinel if it is in two rows or more (of one column, or of several that
    have it), or in one row of a column with another sentinel, and farther from all other values
    than these are from each other. From -99 down, it needs no distance if no other value is
    negative.

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
    repeated = {sentinel.column for sentinel in found if counts[sentinel.value] > 1}
    return [sentinel for sentinel in found if sentinel.column in repeated]


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


def find_compact_dates(
    points: np.ndarray, missing: MissingValues, conversion: Conversion
) -> list[int]:
    """Return the features that are numbers such as 20240105 in all rows."""
    found = []
    for i, (start, feature) in enumerate(
        zip(conversion.starts, conversion.features, strict=True) if missing.n_rows else ()
    ):
        if feature.is_text or missing.least is None or missing.largest is None:
            continue
        # Their ends first: no other column is read.
        if missing.least[start] >= 1900_01_01 and missing.largest[start] <= 2099_12_31:
            values = np.unique(points[:, start])
            if len(values) > 1 and read_compact_dates(values[~np.isnan(values)]) is not None:
                found.append(i)
    return found


def choose_compact_dates(
    table: Table, points: np.ndarray, conversion: Conversion, found: list[int]
) -> tuple[Conversion, dict[str, str]]:
    """Return the conversion with dates in place of numbers such as 20240105, and words about it.

    Raises `ValueError` if the user must decide.
    """
    way, spell = table.options.dates, table.options.spell
    names = [conversion.features[i].column for i in found]
    first = int(np.nanmin(points[:, conversion.starts[found[0]]]))
    if way is None:
        raise ValueError(
            f"{table.name}: {list_names(names, 6)} {'have' if len(names) > 1 else 'has'} dates "
            f"(from {first}); pass {spell('dates', 'days')}, {spell('dates', 'parts')}, "
            f"{spell('dates', 'drop')}, or {spell('dates', 'keep')} if these are numbers"
        )
    if way == "keep":
        return conversion, {}
    features, words = [*conversion.features], dict[str, str]()
    for i in found:
        values = np.unique(points[:, conversion.starts[i]])
        days = read_compact_dates(values[~np.isnan(values)])
        assert days is not None
        parts = varying_parts(days, has_time=False) if way == "parts" else ()
        features[i] = replace(features[i], notation=Notation("date", parts=parts))
        shown = f"as {', '.join(parts)}" if parts else "as days since 1970-01-01"
        words[features[i].column] = "dates left out" if way == "drop" else f"dates {shown}"
    kept = [f for i, f in enumerate(features) if way != "drop" or i not in found]
    if not kept:
        raise ValueError(f"{table.name}: no column is left; choose columns of numbers")
    return replace(conversion, features=tuple(kept)), words


def find_sentinels(
    points: np.ndarray, missing: MissingValues, conversion: Conversion
) -> list[FoundSentinel]:
    """Return the numbers that probably mark missing values."""
    if conversion.keeps_sentinels or missing.least is None or missing.largest is None:
        return []
    kinds: dict[str, list[int]] = {"number": [], "date": []}
    for start, feature in zip(conversion.starts, conversion.features, strict=True):
        kind = "number" if feature.notation is None else feature.notation.kind
        if feature.categories is None and not feature.parts and kind in kinds:
            kinds[kind].append(start)
    ends = missing.least, missing.largest
    return [
        *find_in_columns(points, ends, kinds["number"], NUMBERS),
        *find_in_columns(points, ends, kinds["date"], DATES),
    ]


def choose_sentinels(
    table: Table, conversion: Conversion, found: list[FoundSentinel]
) -> Conversion:
    """Return the conversion with these sentinels; raises `ValueError` if the user must decide."""
    words = describe_sentinels(conversion, found)
    if table.options.sentinels != "missing":
        spell = table.options.spell
        listed = [f"{name} has {text}" for name, text in words.items()]
        raise ValueError(
            f"{table.name}: {list_names(listed, 4)}, far from all other values; pass "
            f"{spell('sentinels', 'missing')} if that means a missing value (with "
            f"{spell('missing', 'drop')} or {spell('missing', 'median')}), or "
            f"{spell('sentinels', 'keep')} if it is a value"
        )
    own: dict[int, tuple[float, ...]] = {}
    for sentinel in found:
        own[sentinel.column] = (*own.get(sentinel.column, ()), sentinel.value)
    features = (
        replace(f, sentinels=(*f.sentinels, *own[start])) if start in own else f
        for start, f in zip(conversion.starts, conversion.features, strict=True)
    )
    return replace(conversion, features=tuple(features))


def describe_sentinels(conversion: Conversion, found: list[FoundSentinel]) -> dict[str, str]:
    """Return the sentinels of each column in words, by its name."""
    words: dict[str, list[str]] = {}
    for each in found:
        feature = conversion.features[conversion.starts.index(each.column)]
        show = f"{each.value:g}" if abs(each.value) >= 1e16 else f"{each.value:.10g}"
        rest = f"others {each.least:.4g} to {each.largest:.4g}"
        if feature.notation is not None and feature.notation.is_date:
            days = (each.value, each.least, each.largest)
            show, least, largest = (str(np.datetime64(int(day), "D")) for day in days)
            rest = f"others {least} to {largest}"
        text = f"{show} in {each.count:,} row{'s' * (each.count > 1)} ({rest})"
        words.setdefault(feature.column, []).append(text)
    return {name: " and ".join(texts) for name, texts in words.items()}
