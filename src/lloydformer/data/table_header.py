"""The header of a table in text: whether its first record has the names of the columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from lloydformer.data.columns import shortened
from lloydformer.data.csv_values import MISSING_VALUES, is_number
from lloydformer.data.spreadsheet_names import unguarded
from lloydformer.data.table_options import TableOptions

_YEARS = range(1800, 2201)


@dataclass(frozen=True)
class TableHeader:
    """The fields of the first record, the line at which it ends, and the names, if it has them."""

    fields: tuple[str, ...]
    lines: int
    names: tuple[str, ...] | None


def find_header(
    name: str,
    first: tuple[int, Sequence[str]],
    below: Sequence[Sequence[str]],
    decimal: str,
    options: TableOptions,
    expected: Sequence[str] | None = None,
) -> TableHeader:
    """Tell names from a first row of values.

    A record of words has names, and one of numbers is a row. Raises ValueError for one that may be
    either, as `2019, 2020`, unless the user says what it is, or its fields are all the `expected`
    names. An apostrophe that guards a name against spreadsheets does not belong to it.

    `first`: the line at which the first record ends, and its fields; `below`: some records.
    """
    line, fields = first[0], tuple(field.strip() for field in first[1])
    names = tuple(unguarded(field) for field in fields)
    header = options.header
    if header is None and expected and set(expected) <= set(names):
        header = True
    if header is None:
        header = _recognised(name, line, fields, below, decimal, options)
    return TableHeader(fields, line, names if header else None)


def _recognised(
    name: str, line: int, fields: Sequence[str], below: Sequence[Sequence[str]], decimal: str,
    options: TableOptions,
) -> bool:  # fmt: skip
    numbers = [f for f in fields if is_number(f, decimal)]
    words = [f for f in fields if f not in numbers and f not in MISSING_VALUES]
    if words and not numbers:
        return True
    alike = _counts(numbers) or _years(numbers)
    columns = list(zip(*(row for row in below if len(row) == len(fields)), strict=True))
    if words:
        again = any(f in column for f, column in zip(fields, columns, strict=False) if f in words)
        if alike and not again and len(numbers) > (2 if _counts(numbers) else 0):
            return True
        if not columns:
            return True
    elif not (alike and _other_below(fields, numbers, columns, decimal)):
        return False
    shown = shortened(fields, 6)
    raise ValueError(
        f"{name}: line {line} ({shown}) may be names or a row; pass "
        f"{options.spelled('header', True)} or {options.spelled('header', False)}"
    )


def _counts(numbers: Sequence[str]) -> bool:
    """Whether they are 0, 1, 2, ... or 1, 2, 3, ..."""
    return numbers[:1] in (["0"], ["1"]) and list(numbers) == [
        str(int(numbers[0]) + i) for i in range(len(numbers))
    ]


def _years(numbers: Sequence[str]) -> bool:
    years = [int(n) for n in numbers if n.isdecimal() and int(n) in _YEARS]
    return bool(years) and len(years) == len(numbers) and years == sorted(set(years))


def _other_below(
    fields: Sequence[str], numbers: Sequence[str], columns: Sequence[Sequence[str]], decimal: str
) -> bool:
    """Whether the values below are of another kind: no integers, or no years."""
    own = [c for f, c in zip(fields, columns, strict=False) if f in numbers]
    kind = _years if _years(numbers) else str.isdecimal
    return bool(own) and all(
        any(v not in MISSING_VALUES and not _is(kind, v) for v in map(str.strip, column))
        for column in own
    )


def _is(kind: object, value: str) -> bool:
    return _years([value]) if kind is _years else value.lstrip("+-").isdecimal()
