"""The header of a CSV file: column names, or the first row of numbers."""

import csv
from dataclasses import dataclass
from pathlib import Path

from lloydformer.data.csv_errors import MISSING_VALUES, CsvLines, field_fault, is_number
from lloydformer.data.spreadsheet_names import unguarded

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
"""Separators that a file may use instead of the expected one, with their names."""


@dataclass(frozen=True)
class CsvHeader:
    """The fields of the first row that is not empty, and the number of lines up to its end."""

    fields: list[str]
    lines: int

    @property
    def names(self) -> list[str] | None:
        """Column names: the fields, or None if all are numbers or missing values.

        An apostrophe that guards a name against spreadsheets does not belong to it.
        """
        numbers = all(field in MISSING_VALUES or is_number(field) for field in self.fields)
        return None if numbers else [unguarded(field) for field in self.fields]

    @property
    def wrong_separator(self) -> str | None:
        """The error if the only field contains another separator, else None."""
        if len(self.fields) != 1:
            return None
        for sign, name in _SEPARATORS.items():
            if sign in self.fields[0]:
                return (
                    f"line {self.lines}: found {name} between the values; separate them by "
                    "commas, or by tabs in a .tsv file"
                )
        return None


def delimiter_of(path: Path) -> str:
    """Return a tab for .tsv files, else a comma."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def read_header(path: Path) -> CsvHeader:
    """Read the header; raises `ValueError` for an open quote, a huge line, or another encoding."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = CsvLines(file)
        reader = csv.reader(lines, delimiter=delimiter_of(path))
        try:
            fields = next((row for row in reader if row), [])
        except csv.Error:
            raise ValueError(f"{path}: line 1: {field_fault(lines)}") from None
        except ValueError as error:
            raise ValueError(f"{path}: line 1: {error}") from None
    if any("\0" in field for field in fields):
        raise ValueError(f"{path}: is not text in UTF-8; save it as UTF-8")
    return CsvHeader([field.strip() for field in fields], reader.line_num)
