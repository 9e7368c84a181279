"""How a CSV file is written: separator, decimal point and encoding, recognised in its beginning."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lloydformer.data.byte_source import ByteSource
from lloydformer.data.csv_values import MISSING_VALUES, is_number
from lloydformer.data.table_options import TableOptions

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_ENCODINGS = {"cp1252": "Windows-1252 (Latin-1)", "utf-16": "UTF-16", "latin-1": "Latin-1"}
_DECODED = 1 << 24
"""Bytes that are decoded to recognise the encoding."""
_SAMPLE = 1 << 18
"""Characters in which separator and decimal point are recognised."""
_RECORDS = 500
_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?P<mark>[.,])\d{3}\s*")


@dataclass(frozen=True)
class CsvFormat:
    """Separator, decimal point and encoding of a CSV file.

    `said`: what was recognised and is not the default, in words.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    said: tuple[str, ...] = ()


def recognise(source: ByteSource, options: TableOptions, default: str) -> CsvFormat:
    """Recognise how a file is written; what the user says comes first.

    `default`: the separator that the name of the file stands for.
    """
    raw = source.begin(_DECODED)
    encoding = options.encoding or _encoding(source.name, raw, options)
    text = _beginning(raw, encoding)
    sep = options.separator or _separator(text, default)
    rows = list(_records(text, sep))
    decimal = options.decimal or recognised_decimal(source.name, rows[1:], sep, options)
    said = [f"{_ENCODINGS[encoding]} text"] if encoding in _ENCODINGS else []
    said += [f"{SEPARATORS[sep]} between values"] if sep != default and sep in SEPARATORS else []
    said += ["decimal commas"] if decimal == "," else []
    given = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    return CsvFormat(sep, decimal, given, () if _all_given(options) else tuple(said))


def _all_given(options: TableOptions) -> bool:
    return None not in (options.sep, options.decimal, options.encoding)


def _encoding(name: str, raw: bytes, options: TableOptions) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in raw[:_SAMPLE]:
        raise ValueError(f"{name}: is not text in UTF-8; save it as UTF-8, or pass "
                         f"{options.spelled('encoding')}")  # fmt: skip
    try:
        raw[:-4].decode("utf-8") if len(raw) == _DECODED else raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(raw) == _DECODED and error.start > len(raw) - 8:  # a character was cut
            return "utf-8"
        return "latin-1" if set(raw) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"
    return "utf-8"


def _beginning(raw: bytes, encoding: str) -> str:
    """Whole lines at the beginning of the text."""
    width = 2 if "16" in encoding else 1
    text = raw[: width * _SAMPLE].decode(encoding, errors="replace").removeprefix("\ufeff")
    if len(raw) <= width * _SAMPLE:
        return text
    end = max(text.rfind("\n"), text.rfind("\r"))
    return text[: end + 1] if end >= 0 else text


def csv_reader(lines: Iterable[str], sep: str) -> Any:
    """A reader of records; several spaces separate values as one does."""
    if sep == " ":
        lines = (line.rstrip() + "\n" for line in lines)
    return csv.reader(lines, delimiter=sep, skipinitialspace=sep == " ")


def _records(text: str, sep: str, most: int = _RECORDS) -> Iterable[list[str]]:
    """The first records that are not empty; ends at one that cannot be read."""
    try:
        for row in csv_reader(io.StringIO(text, newline=""), sep):
            if any(field.strip() for field in row):
                yield row
                most -= 1
            if most == 0:
                return
    except csv.Error:
        return


def _separator(text: str, default: str) -> str:
    """The separator that cuts most records into as many values, most of them numbers."""
    order = [default, *(sep for sep in SEPARATORS if sep != default)]
    return max(order, key=lambda sep: (_score(list(_records(text, sep))), -order.index(sep)))


def _score(rows: Sequence[list[str]]) -> tuple[float, float]:
    widths = Counter(map(len, rows))
    width, count = widths.most_common(1)[0] if widths else (1, 0)
    if width < 2:
        return 0.0, 0.0
    fields = [field for row in rows[1:] or rows if len(row) == width for field in row]
    numbers = sum(is_number(field, ".") or is_number(field, ",") for field in fields)
    return round(count / len(rows), 2), numbers / max(len(fields), 1)


def recognised_decimal(
    name: str, rows: Sequence[Sequence[str]], sep: str, options: TableOptions
) -> str:
    """The decimal point of some records; raises ValueError if thousands look the same."""
    fields = [f for row in rows for f in row if f.strip() not in MISSING_VALUES]
    commas = [f for f in fields if _COMMA.fullmatch(f)]
    points = [f for f in fields if "." in f and is_number(f, ".")]
    if sep == ";" and points and not commas and all(map(_THOUSANDS.fullmatch, points)):
        raise ValueError(
            f"{name}: found {points[0].strip()!r}, which may be {_both(points[0])}; pass "
            f"{options.spelled('decimal', '.')} for the former, or remove the points in thousands"
        )
    ambiguous = all(map(_THOUSANDS.fullmatch, commas))
    return "," if commas and not points and not ambiguous else "."


def _both(text: str) -> str:
    plain = text.strip()
    return f"{plain.replace(',', '.')} or {plain.replace(',', '').replace('.', '')}"


def may_be_thousands(text: str) -> bool:
    """Whether a text such as 1,234 is a number with a decimal comma or one of thousands."""
    found = _THOUSANDS.fullmatch(text)
    return found is not None and found["mark"] == ","
