"""Excel workbooks, read with openpyxl.

openpyxl is pure Python; python-calamine is a compiled package. A sheet is read into memory, and its
cells become the texts that a CSV file would have, so that both are read by the same rules.
"""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from lloydformer.data.csv_format import Record, detect_decimal, read_header
from lloydformer.data.csv_table import RecordTable
from lloydformer.data.table_options import TableOptions

# Rows in which the decimal point is detected: 200 below the header, as many as a header of a text
# is compared with.
_SAMPLE = 201


def open_sheet(path: Path, options: TableOptions) -> RecordTable:
    """Open a workbook: its first sheet, or the one of the options."""
    try:
        import openpyxl
    except ImportError:
        raise ValueError(
            f'{path}: Excel files need openpyxl: pip install "lloydformer[data]", or save it as '
            ".csv"
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path}: not a readable Excel file ({words}); save it again, or as .csv"
        ) from None
    try:
        titles, title = book.sheetnames, options.sheet
        if title is not None and title not in titles:
            raise ValueError(
                f"{path}: {options.spell('sheet')}: found {title!r}; there are {', '.join(titles)}"
            )
        sheet = book.worksheets[0] if title is None else book[title]
        rows = [
            (line, [_cell_text(value) for value in row])
            for line, row in enumerate(sheet.iter_rows(values_only=True), start=1)
        ]
    finally:
        book.close()
    # Formatted cells without a value make rows longer, and some writers end a row at its last
    # value: all rows get the width of the widest one.
    rows = [(line, row) for line, row in rows if any(row)]
    width = max((max(i + 1 for i, text in enumerate(row) if text) for _, row in rows), default=0)
    records: list[Record] = [(line, line, (row + [""] * width)[:width]) for line, row in rows]
    if not records:
        raise ValueError(
            f"{path}: found no rows in sheet {sheet.title!r}; points are rows of numbers"
        )
    below = [fields for _, _, fields in records[1:_SAMPLE]]
    decimal = options.decimal or detect_decimal(str(path), below, "", options)
    header = read_header(str(path), iter(records), decimal, options)
    table = RecordTable(str(path), header, decimal, options, lambda: iter(records))
    if title is None and len(titles) > 1:
        more = f"{options.spell('sheet')} chooses another"
        table.notes = [f"{path}: sheet {sheet.title!r} was read; {more}"]
    return table


def _cell_text(value: Any) -> str:
    """Return a cell as a CSV file has it; numbers keep all digits."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return "" if value is None else str(value).strip()
