"""Where a CSV file goes wrong: looked for, line by line, once it is known that it does."""

import csv
from collections.abc import Sequence
from pathlib import Path


def first_fault(
    path: Path, delimiter: str, columns: dict[int, str], width: int, nothing: Sequence[str]
) -> str | None:
    """The first line with another number of values, or with a value that is no number.

    columns: the names of those that are read, by their places. nothing: words for no value.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        next((row for row in reader if row), None)  # names, or numbers that were looked at
        for row in filter(None, reader):
            if len(row) != width:
                return (
                    f"line {reader.line_num}: found {len(row)} values for {width} columns; give "
                    "every row the same number of columns"
                )
            for place, name in columns.items():
                if row[place] not in nothing and not is_number(row[place]):
                    return (
                        f"line {reader.line_num}, column {name}: found {row[place]!r}; correct "
                        "it, or choose columns of numbers"
                    )
    return None


def is_number(text: str) -> bool:
    """Is it one that Python reads?"""
    try:
        float(text)
    except ValueError:
        return False
    return True
