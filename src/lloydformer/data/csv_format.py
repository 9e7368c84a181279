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
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from lloydformer.data.notations import MISSING_WORDS, reads_as_number
from lloydformer.data.table import list_names
from lloydformer.data.table_options import MISSING_VALUES, TableOptions
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
# A number with a decimal comma; and one that may be thousands as well, as 1.234 or 1,234.
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_SMALL = re.compile(r"\s*[+-]?[1-9]\d{0,2}\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}[.,]\d{3}\s*")
# Numbers of four digits that a header may have as years. Beyond them they are taken for values.
_YEARS = range(1800, 2201)
# Records that a header is compared with, also in Python. Years and numbers of columns differ from
# values in most rows, so that a few suffice.
_BELOW = 200
# Units without brackets and signs, as they are written above columns. Other words in the first row
# may be slips, so that the user is asked.
_UNIT_WORDS = (
    "s sec ms us ns min h hr hrs d day days wk week weeks month months yr yrs year years m mm "
    "cm dm km um nm in inch ft yd mi mile miles km/h kmh m/s mph kn kt m2 m3 ha l L ml mL cl "
    "g kg mg ug t lb lbs oz K C F degC degF deg rad Pa hPa kPa MPa mbar bar psi V mV kV A mA "
    "uA W kW MW Wh kWh MWh J kJ MJ cal kcal Hz kHz MHz GHz N kN Nm mol mmol ppm ppb pH dB lx "
    "lux lm rpm pct percent count counts number no. pcs pieces EUR USD GBP CHF JPY euro euros "
    "dollars bit B kB MB GB TB px"
)
_UNITS = frozenset(_UNIT_WORDS.split())
_UNIT_SIGNS = re.compile(r"[\[(<].*[\])>]|[^0-9]*[%°µμ²³Ωℓ€$£¥·⁻][^0-9]*")
# Signs with which a formula of a spreadsheet begins, in full width as well.
_FORMULA_SIGNS = "=+\\-@\t\r\n＝＋－＠"


def parse_number(text: str, decimal: str, missing: Set[str] = MISSING_VALUES) -> float:
    """Return the number of a text, NaN if it is missing; raises `ValueError` for words.

    >>> parse_number("1,5", ","), parse_number(" 2e3", "."), parse_number("NA", ".")
    (1.5, 2000.0, nan)
    """
    text = text.strip()
    if text in missing:
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
    """Format of a text.

    Attributes
    ----------
    sep, decimal, encoding : str
        Separator, decimal point and encoding.
    comment : str
        The sign at which a comment begins; "" for none.
    inline : bool
        Comments may follow values, and are not only lines of their own.
    names : tuple of str or None
        Names of the columns, if they are in a comment above the first row.
    names_line : int
        The line of that comment.
    notes : tuple of str
        What was detected and is not the default, in words.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    comment: str = ""
    inline: bool = False
    names: tuple[str, ...] | None = None
    names_line: int = 0
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
    # Empty lines in place of those that are left out: lines keep their numbers.
    lines = list(leave_out_lines(io.StringIO(text, newline=""), options))
    comment = options.comment or detect_comment(lines, options, default)
    names, names_line = None, 0
    if comment:
        inline = options.comment is not None
        rest = "".join(leave_out_comments(lines, comment, inline=inline))
        sep = options.separator or detect_separator(rest, default)
        if not inline and options.header is not False:
            names, names_line = read_commented_names(lines, rest, sep, comment)
    else:
        rest = "".join(lines)
        sep = options.separator or detect_separator(rest, default)
    rows = _first_records(rest, sep)[0 if names else 1 :]
    decimal, doubt = options.decimal_point or "", ""
    if not decimal:
        decimal, doubt = detect_decimal(text_file.name, rows, sep, options)
    notes = []
    if encoding in _ENCODINGS:
        notes.append(f"{_ENCODINGS[encoding]} text")
    if sep != default and sep in SEPARATORS:
        notes.append(f"{SEPARATORS[sep]} between values")
    if decimal == ",":
        notes.append("decimal commas")
    if doubt:
        notes.append(doubt)
    if None not in (options.sep, options.decimal_point, options.encoding):
        notes = []
    if comment and options.comment is None:
        more = f", the last one with the names ({list_names(names, 6)})" if names else ""
        notes.append(f"lines of comments ({comment}){more}")
    inline = options.comment is not None
    return CsvFormat(sep, decimal, encoding, comment, inline, names, names_line, tuple(notes))


def leave_out_lines(lines: Iterable[str], options: TableOptions) -> Iterable[str]:
    """Return lines, empty where they are to be skipped."""
    if not options.skipped:
        return lines
    return ("\n" if options.skips(number) else line for number, line in enumerate(lines, start=1))


def leave_out_comments(lines: Iterable[str], comment: str, inline: bool) -> Iterator[str]:
    """Yield lines without comments; a line that is one becomes empty."""
    quotes = 0
    for line in lines:
        if comment in line and quotes % 2 == 0:
            if line.lstrip().startswith(comment):
                yield "\n"
                continue
            place = line.find(comment)
            while inline and place >= 0:
                if line.count('"', 0, place) % 2 == 0:
                    line = line[:place].rstrip() + "\n"
                place = line.find(comment, place + 1)
        quotes += line.count('"')
        yield line


def detect_comment(lines: Sequence[str], options: TableOptions, default: str) -> str:
    """Return "#" if lines that begin with it are comments, else "".

    They are if they come first, or if they have another number of values than the others. A first
    line as `#id,age` has names.
    """
    filled = [line for line in lines if line.strip()]
    marked = [line for line in filled if line.lstrip().startswith("#")]
    if not marked or len(marked) == len(filled):
        return ""
    rest = "".join(line for line in filled if not line.lstrip().startswith("#"))
    sep = options.separator or detect_separator(rest, default)
    records = _first_records(rest, sep)
    width = Counter(map(len, records)).most_common(1)[0][0] if records else 1
    alike = [line for line in marked if sum(map(len, _first_records(line, sep))) == width]
    if filled[0] is marked[0]:
        is_header = len(marked) == 1 and alike and re.match(r"\s*#\S", marked[0])
        return "" if is_header else "#"
    return "" if alike else "#"


def read_commented_names(
    lines: Sequence[str], rest: str, sep: str, comment: str
) -> tuple[tuple[str, ...] | None, int]:
    """Return the names in the last comment above the first row, and its line.

    `numpy.savetxt` writes them so. There are none if the first row has words itself, or another
    number of values.
    """
    first = _first_records(rest, sep)[:1]
    marked = 0
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith(comment):
            break
        marked = number if line.strip() else marked
    if not marked or not first or not any(map(reads_as_number, first[0])):
        return None, 0
    fields = _first_records(lines[marked - 1].strip().lstrip(comment).strip() + "\n", sep)
    names = tuple(field.strip() for field in fields[0]) if fields else ()
    words = all(name and not reads_as_number(name) for name in names)
    return (names, marked) if words and len(names) == len(first[0]) else (None, 0)


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
) -> tuple[str, str]:
    """Return the decimal point of some records, and a note if thousands look the same.

    Raises `ValueError` if they do, and are likely. `sep` is "" for cells of a spreadsheet: those
    that are numbers there come with a decimal point, and without zeros at their ends.
    """
    fields = [field for row in rows for field in row if field.strip() not in MISSING_VALUES]
    commas = [field for field in fields if _DECIMAL_COMMA.fullmatch(field)]
    points = [field for field in fields if "." in field and is_number(field)]
    grouped = all(map(_THOUSANDS.fullmatch, points))
    if commas:
        certain = not all(map(_THOUSANDS.fullmatch, commas))  # 1,5 is no number of thousands
        # Beside 1,5 a 1.234 may be thousands: as the decimal point is a comma, its column is asked
        # for.
        return ("," if certain and grouped else "."), ""
    if options.expected_decimal is not None or options.thousands_mark is not None or not sep:
        return options.expected_decimal or ".", ""  # with apostrophes, no point separates thousands
    # Where semicolons separate values, a comma is usually the decimal point. Other separators say
    # nothing, but 1.234 beside 571 is likely written in groups: three decimals would be in both.
    doubtful = _find_groups(rows) or (points[0] if points and grouped and sep == ";" else None)
    if doubtful is not None:
        first = doubtful.strip()
        raise ValueError(
            f"{name}: found {first!r}, which may be {first} or {first.replace('.', '')}; pass "
            f"{options.spell('decimal', '.')} for the former, or {options.spell('thousands', '.')} "
            "for the latter"
        )
    if not points or not grouped:
        return ".", ""
    # Without a small number, a column of three decimals looks like one of thousands. It is the
    # usual one of the two between commas or tabs, so this is a note and not a question.
    first = points[0].strip()
    return ".", (
        f"decimal points: {first} is read as {first}, pass {options.spell('thousands', '.')} if it "
        f"is {first.replace('.', '')}"
    )


def _find_groups(rows: Sequence[Sequence[str]]) -> str | None:
    """Return a number such as 1.234 of a column that also has whole ones of up to three digits.

    All numbers with a point in the column have groups of three digits.
    """
    for column in zip_longest(*rows, fillvalue=""):
        pointed = [text for text in column if "." in text and text.strip() not in MISSING_VALUES]
        if (
            pointed
            and all(map(_THOUSANDS.fullmatch, pointed))
            and any(map(_SMALL.fullmatch, column))
        ):
            return pointed[0]
    return None


# The first line of a record, its last line, its fields.
Record = tuple[int, int, list[str]]


@dataclass(frozen=True)
class TableHeader:
    """The columns of a table of records.

    Attributes
    ----------
    width : int
        The number of values in a record.
    lines : int
        Lines at the beginning that are not rows: to the end of the names, or of units below them.
    names : tuple of str or None
        Names of the columns.
    units : tuple of str
        A line of units below the names, if there is one.
    n_titles : int
        Records above the names.
    """

    width: int
    lines: int
    names: tuple[str, ...] | None
    units: tuple[str, ...] = ()
    n_titles: int = 0

    @property
    def notes(self) -> list[str]:
        """The detected format in words."""
        words = [unit for unit in self.units if unit]
        found = [f"line {self.lines} as units ({list_names(words, 6)})"] if words else []
        titles = f"{self.n_titles} line{'s' * (self.n_titles > 1)} above the names as a title"
        return [titles, *found] if self.n_titles else found


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
    below: list[Record] = []
    with suppress(ValueError):  # a damaged record is an error only if it is read
        below += islice(records, _BELOW)
    first, below, n_titles = leave_out_titles(first, below, options)
    refuse_title(name, first, below, options)
    _, line, values = first
    fields = tuple(field.strip() for field in values)
    names = tuple(unescape_formula(field) for field in fields)
    same = [row for _, _, row in below if len(row) == len(fields)]
    header = options.header
    if header is None and options.expected and set(options.expected) <= set(names):
        header = True
    if header is None:
        header = is_header(fields, list(zip(*same, strict=True)), decimal)
    if header is None:
        raise ValueError(
            f"{name}: line {line} ({list_names(fields, 6)}) may be names or a row; pass "
            f"{options.spell('header', True)} or {options.spell('header', False)}"
        )
    if not header:
        # Lines that are skipped before the first row; a comment has no row before it, too.
        return TableHeader(len(fields), first[0] - 1, None)
    if is_unit_row(same) and same[0] is below[0][2]:
        units = tuple(field.strip() for field in same[0])
        return TableHeader(len(fields), below[0][1], names, units, n_titles)
    return TableHeader(len(fields), line, names, n_titles=n_titles)


def leave_out_titles(
    first: Record, below: list[Record], options: TableOptions
) -> tuple[Record, list[Record], int]:
    """Return the record with all names that a model knows, those below it, and how many are above.

    The first record and those below it, if there is no such record.
    """
    if options.header is not False and not all(map(str.isdecimal, options.expected)):
        for i, record in enumerate([first, *below]):
            names = {unescape_formula(field.strip()) for field in record[2]}
            if names.issuperset(options.expected):
                return record, below[i:], i
    return first, below, 0


def refuse_title(name: str, first: Record, below: Sequence[Record], options: TableOptions) -> None:
    """Raise `ValueError` if the first record is a title: most others have more values."""
    start, line, values = first
    widths = Counter(len(row) for _, _, row in below)
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    narrow = len(values) < width and count > len(below) / 2
    # In a spreadsheet all rows have the same width, and a title is one value in it.
    title = values[0].strip()
    alone = len(values) > 1 and title != "" and not any(map(str.strip, values[1:]))
    if not (narrow or alone) or reads_as_number(title):
        return
    rows = (record for record in below if len(record[2]) == width)
    found = next((r for r in rows if sum(map(bool, map(str.strip, r[2]))) > 1), None)
    if found is None:
        return
    begin, _, row = found
    lines = (
        f"line {start} is a title"
        if begin - start == 1
        else (f"lines {start} to {begin - 1} are a title")
    )
    words = f"found {len(row)} values for {len(values)} columns"
    if alone and not narrow:
        words = f"only one column has a name ({title[:40]}) in line {line}"
    where = f"line {begin}: " if narrow else ""
    repair = "remove it"
    if not options.on_workers:
        repair = f"pass {options.spell('skip_rows', begin - 1)}"
    raise ValueError(
        f"{name}: {where}{words}; if {lines}, {repair}; else "
        "give every row the same number of columns, and every column a name"
    )


def is_unit_row(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first row has units, or nothing, in all columns of numbers."""
    if len(rows) < 2 or all(map(reads_as_number, rows[0])):
        return False
    columns = list(zip(*rows, strict=True))
    # Most tables end here, before all of their values are looked at.
    if any(reads_as_number(first) and reads_as_number(second) for first, second, *_ in columns):
        return False
    found = False
    for unit, *values in columns:
        filled = [v for v in map(str.strip, values) if v.lower() not in MISSING_WORDS and v]
        if not filled or not all(map(reads_as_number, filled)):
            continue
        unit = unit.strip()
        if unit == "" or unit.lower() in MISSING_WORDS:  # numbers without a unit
            continue
        if unit not in _UNITS and not _UNIT_SIGNS.fullmatch(unit):
            return False
        found = True
    return found


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
