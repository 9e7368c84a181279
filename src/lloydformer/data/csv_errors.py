"""Find the faulty line of a CSV file that pyarrow could not read."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

MISSING_VALUES = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that mean a missing value."""
_LONGEST = 1 << 26
"""Characters of the longest line that is read; bounds memory."""


class CsvLines:
    """The lines of a file for `csv.reader`, which refuses fields beyond `csv.field_size_limit()`.

    Parameters
    ----------
    file : TextIO
        The open file.

    Attributes
    ----------
    quotes : int
        Quotes in the lines since it was last set to 0, at the start of a record.
    """

    def __init__(self, file: TextIO) -> None:
        self.file, self.quotes = file, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.file.readline(_LONGEST + 1)
        if not line:
            raise StopIteration
        if len(line) > _LONGEST:
            raise ValueError(f"found a line of more than {_LONGEST >> 20} million characters; "
                             "separate rows by ends of lines")  # fmt: skip
        self.quotes += line.count('"')
        return line

    def unclosed_quote(self) -> bool:
        """Tell whether a quote of the current record is open at the end of the file."""
        while self.quotes % 2 and next(self, None) is not None:
            pass
        return self.quotes % 2 == 1


def field_fault(lines: CsvLines) -> str:
    """What is wrong with a record that `csv.reader` refused."""
    if lines.unclosed_quote():
        return "found a quote that is not closed; close it, or remove it"
    return (
        f"found a field of more than {csv.field_size_limit():,} characters; shorten it, or close "
        "its quote"
    )


def first_error(path: Path, delimiter: str, columns: dict[int, str], width: int) -> str | None:
    """Describe the first line that does not have `width` values, or has one that is no number.

    `columns`: names of the columns that are read, by their index.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = CsvLines(file)
        reader = csv.reader(lines, delimiter=delimiter)
        line, first = 1, True
        try:
            for row in reader:
                lines.quotes = 0
                error = None if first or not row else _row_error(row, columns, width)
                if error is not None:
                    return f"line {line}{error}"
                line, first = reader.line_num + 1, first and not row  # a row may span several lines
        except csv.Error:  # pyarrow reads longer fields; what follows them is not checked
            return f"line {line}: {field_fault(lines)}" if lines.unclosed_quote() else None
        except ValueError as error:
            return f"line {line}: {error}"
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
