"""Where a CSV file goes wrong: looked for, line by line, once it is known that it does."""

import csv
from pathlib import Path

NOTHING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""What stands where a value is missing."""
UNCLOSED = "found a quote that is not closed; close it, or remove it"


def first_fault(path: Path, delimiter: str, columns: dict[int, str], width: int) -> str | None:
    """The first line with another number of values, or with a value that is no number.

    columns: the names of those that are read, by their places.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        line, first = 1, True
        try:
            for row in reader:
                fault = None if first or not row else _fault(row, columns, width)
                if fault is not None:
                    return f"line {line}{fault}"
                line, first = reader.line_num + 1, first and not row  # a row may take several lines
        except csv.Error:
            return f"line {line}: {UNCLOSED}"
    return None


def _fault(row: list[str], columns: dict[int, str], width: int) -> str | None:
    if len(row) != width:
        return (
            f": found {len(row)} values for {width} columns; give every row the same number of "
            "columns"
        )
    for place, name in columns.items():
        if row[place] not in NOTHING and not is_number(row[place]):
            return (
                f", column {name}: found {row[place]!r}; correct it, or choose columns of numbers"
            )
    return None


def is_number(text: str) -> bool:
    """Is it one that Python reads?"""
    try:
        float(text)
    except ValueError:
        return False
    return True
