"""The records of a CSV text with their line numbers, and what is wrong with those it refuses."""

import csv
import io
from collections.abc import Iterator
from typing import IO, cast

from lloydformer.data.byte_source import ByteSource
from lloydformer.data.csv_format import CsvFormat, csv_reader

_LONGEST = 1 << 26
"""Characters of the longest line that is read; bounds memory."""


class CsvLines:
    """The lines of a file for `csv.reader`, which refuses fields beyond `csv.field_size_limit()`.

    Parameters
    ----------
    file : io.TextIOBase
        The open file.

    Attributes
    ----------
    quotes : int
        Quotes in the lines since it was last set to 0, at the start of a record.
    """

    def __init__(self, file: io.TextIOBase) -> None:
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


def _field_fault(lines: CsvLines) -> str:
    """What is wrong with a record that `csv.reader` refused."""
    if lines.unclosed_quote():
        return "found a quote that is not closed; close it, or remove it"
    return (
        f"found a field of more than {csv.field_size_limit():,} characters; shorten it, or close "
        "its quote"
    )


def csv_records(source: ByteSource, written: CsvFormat) -> Iterator[tuple[int, int, list[str]]]:
    """Each record that is not blank: its first line, its last line, its fields.

    Bytes that are not text in this encoding become surrogates. Raises `ValueError` for an open
    quote and for a huge line or field.
    """
    with source.open() as raw:
        codec = "utf-8-sig" if written.encoding == "utf-8" else written.encoding
        text = io.TextIOWrapper(cast(IO[bytes], raw), codec, "surrogateescape", newline="")
        lines = CsvLines(text)
        reader = csv_reader(lines, written.sep)
        line = 1
        try:
            for row in reader:
                lines.quotes = 0
                if len(row) > 1 or (row and row[0].strip()):
                    yield line, reader.line_num, row
                line = reader.line_num + 1  # a record may span several lines
        except csv.Error:
            raise ValueError(f"{source.name}: line {line}: {_field_fault(lines)}") from None
        except UnicodeError as error:
            raise ValueError(f"{source.name}: line {line}: {error}; is it another encoding?"
                             ) from None  # fmt: skip
        except ValueError as error:
            raise ValueError(f"{source.name}: line {line}: {error}") from None
        finally:
            text.detach()
