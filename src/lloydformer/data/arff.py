"""ARFF, the file format of OpenML: named columns of numbers or of listed words."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from lloydformer.data.columns import Table

_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+?)\s*(\{{.*\}}|\s\w+.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,]*?)\s*(?:,|$)")
_NUMBERS = ("numeric", "real", "integer")
_MISSING = "?"


def read_arff(text: str, names: Sequence[str]) -> Table:
    """Return some columns as float64; listed words become their number in the list, from 0.

    Missing values become NaN. Raises `ValueError` for a file that cannot be read.
    """
    lines = iter(text.splitlines())
    kinds = _attributes(lines)
    if missing := [name for name in names if name not in kinds]:
        raise ValueError(f"not a readable ARFF file (it has no column {missing[0]})")
    rows = list(_rows(lines, len(kinds)))
    order = {name: i for i, name in enumerate(kinds)}
    columns = [_column(name, [row[order[name]] for row in rows], kinds[name]) for name in names]
    return Table(np.column_stack(columns) if columns else np.empty((0, 0)), tuple(names))


def _attributes(lines: Iterator[str]) -> dict[str, str]:
    """The kind of each column; reads up to the line @data."""
    found: dict[str, str] = {}
    for line in lines:
        if line.strip().lower() == "@data":
            return found
        if (parts := _ATTRIBUTE.match(line.strip())) is not None:
            found[_plain(parts[1])] = parts[2].strip()
    raise ValueError("not a readable ARFF file (it has no line @data)")


def _rows(lines: Iterator[str], width: int) -> Iterator[list[str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("%"):
            continue
        if line.startswith("{"):
            raise ValueError("not a readable ARFF file (its rows are sparse)")
        row = _values(line)
        if len(row) != width:
            raise ValueError(
                f"not a readable ARFF file (line {number} of the data has {len(row)} values for "
                f"{width} columns)"
            )
        yield row


def _values(line: str) -> list[str]:
    """The values between commas."""
    if "'" not in line and '"' not in line:
        return [value.strip() for value in line.split(",")]
    found = list(_VALUE.finditer(line))
    if found and not found[-1][0] and not line.rstrip().endswith(","):
        found.pop()  # the empty match at the end of the line
    return [_plain(value[1]) for value in found]


def _plain(text: str) -> str:
    """A value without its quotes."""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in ("'", '"') else text


def _column(name: str, values: list[str], kind: str) -> np.ndarray:
    try:
        if kind.startswith("{"):
            words = {word: float(i) for i, word in enumerate(_values(kind[1:-1]))}
            words[_MISSING] = np.nan
            return np.array([words[value] for value in values])
        if kind.lower() in _NUMBERS:
            return np.array(["nan" if v == _MISSING else v for v in values], np.float64)
    except (ValueError, KeyError) as error:
        raise ValueError(f"not a readable ARFF file (column {name}: {error})") from None
    raise ValueError(f"column {name} holds no numbers ({kind.split()[0]}); choose another set")
