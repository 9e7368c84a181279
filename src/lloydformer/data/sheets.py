"""Excel workbooks, read with openpyxl."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from lloydformer.data.csv_format import recognised_decimal
from lloydformer.data.record_source import RecordSource
from lloydformer.data.table_header import TableHeader, find_header
from lloydformer.data.table_options import TableOptions

_BELOW = 200
Record = tuple[int, int, list[str]]


class SheetSource(RecordSource):
    """A sheet of a workbook, in memory; lines are rows of the sheet."""

    def __init__(
        self, name: str, found: list[Record], header: TableHeader, decimal: str,
        options: TableOptions,
    ) -> None:  # fmt: skip
        super().__init__(name, header, decimal, options)
        self._records = found

    def records(self) -> Iterator[Record]:
        return iter(self._records)


def open_sheet(
    path: Path, options: TableOptions, expected: Sequence[str] | None = None
) -> tuple[SheetSource, str | None]:
    """Open a workbook; returns its sheet, and its name if the workbook has others."""
    book = _book(path)
    try:
        chosen = _chosen(path, book, options)
        found = _records(chosen)
        other = [s for s in book.sheetnames if s != chosen.title]
    finally:
        book.close()
    if not found:
        raise ValueError(f"{path}: found no rows in sheet {chosen.title!r}; points are rows of "
                         "numbers")  # fmt: skip
    below = [fields for _, _, fields in found[1 : _BELOW + 1]]
    decimal = options.decimal or recognised_decimal(str(path), below, "", options)
    header = find_header(str(path), found[0][1:], below, decimal, options, expected)
    source = SheetSource(str(path), found, header, decimal, options)
    return source, chosen.title if other and options.sheet is None else None


def _book(path: Path) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise ValueError(f'{path}: Excel files need openpyxl: pip install "lloydformer[data]", '
                         "or save it as .csv") from None  # fmt: skip
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: not a readable Excel file ({words}); save it again, or as .csv"
                         ) from None  # fmt: skip


def _chosen(path: Path, book: Any, options: TableOptions) -> Any:
    if options.sheet is None:
        return book.worksheets[0]
    if options.sheet not in book.sheetnames:
        raise ValueError(f"{path}: {options.spelled('sheet')}: found {options.sheet!r}; there are "
                         f"{', '.join(book.sheetnames)}")  # fmt: skip
    return book[options.sheet]


def _records(sheet: Any) -> list[Record]:
    """Rows that are not blank, all as wide as the widest."""
    rows = [(line, [_text(value) for value in row])
            for line, row in enumerate(sheet.iter_rows(values_only=True), start=1)]  # fmt: skip
    rows = [(line, row) for line, row in rows if any(row)]
    width = max((max(i + 1 for i, f in enumerate(row) if f) for _, row in rows), default=0)
    return [(line, line, (row + [""] * width)[:width]) for line, row in rows]


def _text(value: Any) -> str:
    """A cell as a CSV file has it; numbers keep all digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value).strip()
