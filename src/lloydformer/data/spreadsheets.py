"""Excel workbooks, read with openpyxl.

openpyxl is pure Python; python-calamine is a compiled package. A sheet is read into memory, and its
cells become the texts that a CSV file would have, so that both are read by the same rules.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

from lloydformer.data.csv_format import Record, detect_decimal, read_header
from lloydformer.data.csv_table import RecordTable
from lloydformer.data.table_options import TableOptions

# Rows in which the decimal point is detected: 200 below the header, as many as a header of a text
# is compared with.
_SAMPLE = 201
# Rows of the largest sheet of Excel. A row with a larger number is damage, and openpyxl would
# return an empty row for each number before it.
_MOST_ROWS = 1 << 20
# The XML of a sheet shrinks 4 to 25 times when it is compressed (measured: random floats, one word
# in all cells), and deflate reaches 1032. A part of more than 4 MB that shrinks more than 200 times
# is one tag repeated. As one row of 16 MB it takes openpyxl 8 seconds and 1.3 GB; there is no upper
# end.
_BOMB_SIZE, _BOMB_RATIO = 1 << 22, 200
# Cells above which a sheet must be filled to 1 %. All rows get the width of the widest one, so a
# stray value in column XFD makes 1.6 billion cells of 100,000 rows.
_MANY_CELLS, _FILLED = 10_000_000, 0.01


def open_sheet(path: Path, options: TableOptions) -> RecordTable:
    """Open a workbook: its first sheet, or the one of the options."""
    try:
        import openpyxl
    except ImportError:
        raise ValueError(
            f'{path}: Excel files need openpyxl: pip install "lloydformer[data]", or save it as '
            ".csv"
        ) from None
    title = options.sheet
    with path.open("rb") as file:
        _refuse_bomb(path, file)
        with _damage_errors(path):
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = {sheet.title: sheet for sheet in book.worksheets}  # no charts
        if not sheets:
            raise ValueError(f"{path}: found no sheet with cells; save it again, or as .csv")
        if title is not None and title not in sheets:
            known = ", ".join(sheets)
            raise ValueError(
                f"{path}: {options.spell('sheet')}: found {title!r}; there are {known}"
            )
        sheet = next(iter(sheets.values())) if title is None else sheets[title]
        rows = [
            (line, texts)
            for line, texts in _read_rows(path, sheet)
            if not options.skips(line) and not _is_comment(texts, options.comment)
        ]
    # Formatted cells without a value make rows longer, and some writers end a row at its last
    # value: all rows get the width of the widest one.
    widths = [max(i + 1 for i, text in enumerate(row) if text) for _, row in rows]
    width = max(widths, default=0)
    if len(rows) * width > _MANY_CELLS:
        n_filled = sum(bool(text) for _, row in rows for text in row)
        if n_filled < _FILLED * len(rows) * width:
            line = rows[widths.index(width)][0]
            raise ValueError(
                f"{path}: line {line}: found a value in column number {width:,}, where only "
                f"{n_filled:,} of {len(rows) * width:,} cells have one; remove values outside of "
                "the table, or save the table as .csv"
            )
    records: list[Record] = [(line, line, (row + [""] * width)[:width]) for line, row in rows]
    if not records:
        raise ValueError(
            f"{path}: found no rows in sheet {sheet.title!r}; points are rows of numbers"
        )
    below = [fields for _, _, fields in records[1:_SAMPLE]]
    decimal = options.decimal_point or detect_decimal(str(path), below, "", options)[0]
    header = read_header(str(path), iter(records), decimal, options)
    table = RecordTable(str(path), header, decimal, options, lambda: iter(records))
    if header.notes:
        table.notes.append(f"{path}: recognised {', '.join(header.notes)}")
    if title is None and len(sheets) > 1:
        more = f"{options.spell('sheet')} chooses another"
        table.notes.append(f"{path}: sheet {sheet.title!r} was read; {more}")
    return table


def _is_comment(texts: list[str], comment: str | None) -> bool:
    """Return True if the first value of a row begins a comment."""
    return comment is not None and next(filter(None, texts), "").startswith(comment)


@contextmanager
def _damage_errors(path: Path) -> Iterator[None]:
    """Raise what openpyxl raises for a damaged workbook as `ValueError` with the name of the file.

    Only for calls into openpyxl, so that no mistake of this package is taken for damage.
    """
    try:
        with warnings.catch_warnings():
            # They are about formats, charts and rules, of which nothing is read.
            warnings.filterwarnings("ignore", module="openpyxl")
            yield
    except MemoryError:
        raise
    # openpyxl checks little, and lets through what zipfile, zlib, expat and its own slips raise:
    # 4,500 mutated files raised ten kinds, from BadZipFile, ParseError and zlib.error to EOFError,
    # KeyError, NotImplementedError and TypeError. No list of kinds would be complete.
    except Exception as error:
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"{path}: not a readable Excel file ({words}); save it again, or as .csv"
        ) from None


def _refuse_bomb(path: Path, file: BinaryIO) -> None:
    """Raise `ValueError` for a file whose parts would take minutes and gigabytes to unpack.

    zipfile unpacks no more of a part than the size that is compared here.
    """
    with _damage_errors(path), ZipFile(file) as archive:
        parts = archive.infolist()
    for part in parts:
        if part.file_size > max(_BOMB_SIZE, _BOMB_RATIO * part.compress_size):
            raise ValueError(
                f"{path}: {part.filename!r} in it unpacks to {part.file_size:,} bytes, "
                f"{part.file_size // max(1, part.compress_size):,} times its size; save the sheet "
                "as .csv"
            )


def _read_rows(path: Path, sheet: Any) -> list[tuple[int, list[str]]]:
    """Return the rows that have a value, each with its line."""
    # Without the dimensions that the file gives. Some writers give too small ones, beyond which
    # cells would be left out, and those of a stray cell would make long rows of nothing.
    sheet.reset_dimensions()
    rows = []
    for line, values in enumerate(_iterate_rows(path, sheet), start=1):
        if line > _MOST_ROWS:
            raise ValueError(
                f"{path}: found a row beyond line {_MOST_ROWS:,}, the last one of a sheet; save it "
                "again, or as .csv"
            )
        texts = [_cell_text(value) for value in values]
        if any(texts):
            rows.append((line, texts))
    return rows


def _iterate_rows(path: Path, sheet: Any) -> Iterator[tuple[Any, ...]]:
    with _damage_errors(path):  # of openpyxl alone: errors of the caller do not pass through here
        yield from sheet.iter_rows(values_only=True)


def _cell_text(value: Any) -> str:
    """Return a cell as a CSV file has it; numbers keep all digits."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return "" if value is None else str(value).strip()
