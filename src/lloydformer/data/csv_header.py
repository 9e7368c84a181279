"""The first line of a CSV file: the names of its columns, or numbers already."""

import csv
from dataclasses import dataclass
from pathlib import Path

from lloydformer.data.csv_errors import NOTHING, UNCLOSED, is_number

_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
"""Signs that separate columns in files of other kinds."""


@dataclass(frozen=True)
class FirstLine:
    """The fields of the first line that is not empty, and how many lines that takes."""

    fields: list[str]
    lines: int

    @property
    def names(self) -> list[str] | None:
        """The fields, if one of them is neither a number nor a word for a missing one."""
        numbers = all(field in NOTHING or is_number(field) for field in self.fields)
        return None if numbers else self.fields

    @property
    def separated_otherwise(self) -> str | None:
        """Why there is only one column, where another sign stands between the values."""
        if len(self.fields) != 1:
            return None
        for sign, name in _OTHERS.items():
            if sign in self.fields[0]:
                return (
                    f"line {self.lines}: found {name} between the values; separate them by "
                    "commas, or by tabs in a .tsv file"
                )
        return None


def delimiter_of(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def first_line(path: Path) -> FirstLine:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter_of(path))
        try:
            fields = next((row for row in reader if row), [])
        except csv.Error:
            raise ValueError(f"{path}: line 1: {UNCLOSED}") from None
    if any("\0" in field for field in fields):
        raise ValueError(f"{path}: is not text in UTF-8; save it as UTF-8")
    return FirstLine([field.strip() for field in fields], reader.line_num)
