"""Find the faulty line of a CSV file that pyarrow could not read."""

import csv
from pathlib import Path

MISSING_VALUES = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that mean a missing value."""
UNCLOSED_QUOTE = "found a quote that is not closed; close it, or remove it"


def first_error(path: Path, delimiter: str, columns: dict[int, str], width: int) -> str | None:
    """Describe the first line that does not have `width` values, or has one that is no number.

    `columns`: names of the columns that are read, by their index.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        line, first = 1, True
        try:
            for row in reader:
                error = None if first or not row else _row_error(row, columns, width)
                if error is not None:
                    return f"line {line}{error}"
                line, first = reader.line_num + 1, first and not row  # a row may span several lines
        except csv.Error:
            return f"line {line}: {UNCLOSED_QUOTE}"
    return None


def _row_error(row: list[str], columns: dict[int, str], width: int) -> str | None:
    if len(row) != width:
        return (
            f": found {len(row)} values for {width} columns; give every row the same number of "
            "columns"
        )
    for index, name in columns.items():
        if row[index] not in MISSING_VALUES and not is_number(row[index]):
            return (
                f", column {name}: found {row[index]!r}; correct it, or choose columns of numbers"
            )
    return None


def is_number(text: str) -> bool:
    """Tell whether Python can parse the text as a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
