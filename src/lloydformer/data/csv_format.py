"""Format of a text: encoding, separator, decimal point and header, detected in its beginning.

Libraries were tried on the cases of tests/data/test_csv_format.py and of the messy files. The
standard library's `csv.Sniffer` misses 3 of 51 separators. `clevercsv` finds them all, in 20 times
the time, and needs other packages. Neither detects decimal commas. `charset-normalizer` takes most
short texts in Windows-1252 for others, such as cp1250, so that accents change.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lloydformer.data.table import list_names
from lloydformer.data.table_options import TableOptions
from lloydformer.data.text_file import TextFile

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_ENCODINGS = {"cp1252": "Windows-1252 (Latin-1)", "utf-16": "UTF-16", "latin-1": "Latin-1"}
# Bytes that Windows-1252 does not define, so that a text with one of them is called Latin-1.
_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
# Bytes in which the encoding is detected: the first letter that is not ASCII may come late.
_DECODED = 1 << 24
# Characters and records in which separator and decimal point are detected. Every separator is
# tried on them in Python; a separator that is wrong differs in the first records already.
_SAMPLE = 1 << 18
_RECORDS = 500
# Texts that mean a missing value: those of pandas, some others, and errors of spreadsheets.
_MISSING = (
    "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
)
_OTHERS = "none ? - -- NaT #DIV/0! #VALUE! #REF! #NUM! #NAME? #NULL!"
MISSING_VALUES = frozenset(["", "#N/A N/A", *_MISSING.split(), *_OTHERS.split()])
# A number with a decimal comma; and one that may be thousands as well, as 1.234 or 1,234.
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}[.,]\d{3}\s*")
# Numbers of four digits that a header may have as years. Beyond them they are taken for values.
_YEARS = range(1800, 2201)
# Records that a header is compared with, also in Python. Years and numbers of columns differ from
# values in most rows, so that a few suffice.
_BELOW = 200
# Signs with which a formula of a spreadsheet begins, in full width as well.
_FORMULA_SIGNS = "=+\\-@\t\r\n＝＋－＠"


def parse_number(text: str, decimal: str) -> float:
    """Return the number of a text, NaN if it is missing; raises `ValueError` for words.

    >>> parse_number("1,5", ","), parse_number(" 2e3", "."), parse_number("NA", ".")
    (1.5, 2000.0, nan)
    """
    text = text.strip()
    if text in MISSING_VALUES:
        return math.nan
    if "_" in text or (decimal == "," and "." in text):  # Python would read 1_000
        raise ValueError(text)
    return float(text.replace(",", ".", 1) if decimal == "," else text)


def is_number(text: str, decimal: str = ".") -> bool:
    """Return True if the text is a number, and not a missing value."""
    try:
        parse_number(text, decimal)
    except ValueError:
        return False
    return text.strip() not in MISSING_VALUES


@dataclass(frozen=True)
class CsvFormat:
    """Separator, decimal point and encoding of a text.

    `notes`: what was detected and is not the default, in words.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    notes: tuple[str, ...] = ()


def detect_format(text_file: TextFile, options: TableOptions, default: str) -> CsvFormat:
    """Detect how a text is written; options override detection.

    `default`: the separator that the name of the file suggests.
    """
    raw = text_file.read_begin(_DECODED)
    encoding = options.encoding or detect_encoding(text_file.name, raw, options)
    sample = _SAMPLE * (2 if "16" in encoding else 1)
    text = raw[:sample].decode(encoding, errors="replace").removeprefix("\ufeff")
    if len(raw) > sample:  # whole lines only
        end = max(text.rfind("\n"), text.rfind("\r"))
        text = text[: end + 1] if end >= 0 else text
    sep = options.separator or detect_separator(text, default)
    rows = _first_records(text, sep)[1:]
    decimal = options.decimal or detect_decimal(text_file.name, rows, sep, options)
    notes = []
    if encoding in _ENCODINGS:
        notes.append(f"{_ENCODINGS[encoding]} text")
    if sep != default and sep in SEPARATORS:
        notes.append(f"{SEPARATORS[sep]} between values")
    if decimal == ",":
        notes.append("decimal commas")
    all_given = None not in (options.sep, options.decimal, options.encoding)
    return CsvFormat(sep, decimal, encoding, () if all_given else tuple(notes))


def detect_encoding(name: str, raw: bytes, options: TableOptions) -> str:
    """Return the encoding of the first bytes of a text: UTF-8, UTF-16 by its mark, or Windows."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in raw[:_SAMPLE]:
        raise ValueError(
            f"{name}: is not text in UTF-8; save it as UTF-8, or pass {options.spell('encoding')}"
        )
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may have been cut, which has up to 4 bytes.
        if len(raw) < _DECODED or error.start < len(raw) - 4:
            return "latin-1" if set(raw) & _NOT_WINDOWS else "cp1252"
    return "utf-8"


def csv_reader(lines: Iterable[str], sep: str) -> Any:
    """Return a reader of records; several spaces separate values as one does."""
    if sep == " ":
        lines = (line.rstrip() + "\n" for line in lines)
    return csv.reader(lines, delimiter=sep, skipinitialspace=sep == " ")


def _first_records(text: str, sep: str) -> list[list[str]]:
    """Return the first records that are not blank, up to one that cannot be read."""
    records: list[list[str]] = []
    try:
        for row in csv_reader(io.StringIO(text, newline=""), sep):
            if any(field.strip() for field in row):
                records.append(row)
            if len(records) == _RECORDS:
                break
    except csv.Error:
        pass
    return records


def detect_separator(text: str, default: str) -> str:
    """Return the separator that cuts most records into as many values, most of them numbers."""

    def score(sep: str) -> tuple[float, float]:
        rows = _first_records(text, sep)
        width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
        if width < 2:
            return 0.0, 0.0
        fields = [field for row in rows[1:] or rows if len(row) == width for field in row]
        numbers = sum(is_number(field, ".") or is_number(field, ",") for field in fields)
        return round(count / len(rows), 2), numbers / max(len(fields), 1)

    return max([default, *(sep for sep in SEPARATORS if sep != default)], key=score)


def detect_decimal(
    name: str, rows: Sequence[Sequence[str]], sep: str, options: TableOptions
) -> str:
    """Return the decimal point of some records; raises `ValueError` if thousands look the same."""
    fields = [field for row in rows for field in row if field.strip() not in MISSING_VALUES]
    commas = [field for field in fields if _DECIMAL_COMMA.fullmatch(field)]
    points = [field for field in fields if "." in field and is_number(field)]
    if sep == ";" and points and not commas and all(map(_THOUSANDS.fullmatch, points)):
        # Where semicolons separate values, a comma is usually the decimal point.
        first = points[0].strip()
        raise ValueError(
            f"{name}: found {first!r}, which may be {first} or {first.replace('.', '')}; pass "
            f"{options.spell('decimal', '.')} for the former, or remove the points in thousands"
        )
    certain = not all(map(_THOUSANDS.fullmatch, commas))  # 1,5 is no number of thousands
    return "," if commas and not points and certain else "."


# The first line of a record, its last line, its fields.
Record = tuple[int, int, list[str]]


@dataclass(frozen=True)
class TableHeader:
    """The width of the first record, the line at which it ends, and the names, if it has them."""

    width: int
    lines: int
    names: tuple[str, ...] | None


def read_header(
    name: str, records: Iterator[Record], decimal: str, options: TableOptions
) -> TableHeader:
    """Tell names from a first row of values.

    A record of words has names, and one of numbers is a row. Raises `ValueError` for one that may
    be either, as `2019, 2020`, unless the options tell, and if there are no records.
    """
    first = next(records, None)
    if first is None:
        raise ValueError(f"{name}: found no rows; points are rows of numbers")
    _, line, values = first
    fields = tuple(field.strip() for field in values)
    names = tuple(unescape_formula(field) for field in fields)
    header = options.header
    if header is None and options.expected and set(options.expected) <= set(names):
        header = True
    if header is None:
        below: list[list[str]] = []
        with suppress(ValueError):  # a damaged record is an error only if it is read
            below += (row for _, _, row in islice(records, _BELOW) if len(row) == len(fields))
        header = is_header(fields, list(zip(*below, strict=True)), decimal)
    if header is None:
        raise ValueError(
            f"{name}: line {line} ({list_names(fields, 6)}) may be names or a row; pass "
            f"{options.spell('header', True)} or {options.spell('header', False)}"
        )
    return TableHeader(len(fields), line, names if header else None)


def is_header(fields: Sequence[str], columns: Sequence[Sequence[str]], decimal: str) -> bool | None:
    """Return True for names, False for values, None if they may be either.

    `columns`: the values below the fields.
    """
    numbers = [field for field in fields if is_number(field, decimal)]
    words = set(fields) - set(numbers) - MISSING_VALUES
    if words and not (numbers and columns):
        return True
    from_0, from_1 = ([str(start + i) for i in range(len(numbers))] for start in (0, 1))
    counts = numbers in (from_0, from_1)
    years = all(map(_is_year, numbers)) and sorted(set(numbers)) == numbers != []
    if words:
        # `land, 2019, 2020` or `0, 1, 2, target` are names; a word that comes again is a value.
        pairs = zip(fields, columns, strict=True)
        again = any(field in column for field, column in pairs if field in words)
        numbered = years or (counts and len(numbers) > 2)
        return True if numbered and not again else None
    # Numbers alone are values, unless they are years or count the columns, and the numbers below
    # are of another kind: no years, or no integers.
    own = [column for f, column in zip(fields, columns, strict=False) if is_number(f, decimal)]
    values = [[v.strip() for v in column if v.strip() not in MISSING_VALUES] for column in own]
    is_same = _is_year if years else lambda value: value.lstrip("+-").isdecimal()
    differ = bool(own) and all(not all(map(is_same, column)) for column in values)
    return None if (years or counts) and differ else False


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdecimal() and int(text) in _YEARS


def escape_formula(name: str) -> str:
    """Return a column's name as it is written to a CSV file.

    A spreadsheet would run a name such as =cmd() as a formula. An apostrophe makes it text; it is
    removed when the file is read again.

    >>> escape_formula("=cmd()"), escape_formula("'=cmd()"), escape_formula("a=b")
    ("'=cmd()", "''=cmd()", 'a=b')
    """
    return f"'{name}" if re.match(f"'*[{_FORMULA_SIGNS}]", name) else name


def unescape_formula(name: str) -> str:
    """Return the name that `escape_formula` was given.

    >>> unescape_formula("'=cmd()"), unescape_formula("''=cmd()"), unescape_formula("'a'")
    ('=cmd()', "'=cmd()", "'a'")
    """
    return name[1:] if re.match(f"'+[{_FORMULA_SIGNS}]", name) else name
