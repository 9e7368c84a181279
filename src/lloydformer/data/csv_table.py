"""Tables in text: records of fields, read by pyarrow where it is installed, else in Python.

The reader in Python is slower, and knows the line of every record. So it also finds the words for
errors: what pyarrow refuses is read again.
"""

import csv
import io
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.csv_format import (
    CsvFormat,
    Record,
    TableHeader,
    csv_reader,
    detect_format,
    is_number,
    leave_out_comments,
    leave_out_lines,
    parse_number,
    read_header,
)
from lloydformer.data.table import ColumnSurvey, Table, TableBatch, object_array
from lloydformer.data.table_options import TableOptions
from lloydformer.data.text_file import TextFile, is_utf8
from lloydformer.data.typed_tables import find_pyarrow

# Rows of a batch in Python; bounds memory, as a text takes several times the room of its number.
_ROWS = 1 << 14
# Bytes that pyarrow parses at a time, unless there are many columns; a line must fit in them.
_BLOCK = 1 << 24
# Characters of the longest record that is read in Python. A record of 2.6 million columns fits,
# each a float64 with all its digits and a separator (25 characters). A larger one is rows without
# ends of lines, or a quote that is not closed: without a bound, that quote would take in the rest
# of the file, minutes and gigabytes of it if the file is compressed.
_LONGEST = 1 << 26
# Characters that are read at a time in search of the end of a quote; bounds memory.
_PART = 1 << 16
# Bytes that are searched for comments at a time; bounds memory.
_SEARCHED = 1 << 22
# Rows in which columns of words are looked for before all rows are. Most files with words have them
# from the first row on, and a survey of all rows in Python takes long.
_FIRST, _SURVEYED = 1000, 200_000


class RecordTable(Table):
    """A table whose records are lists of texts, the header among them.

    Parameters
    ----------
    name : str
        The file, for messages.
    header : TableHeader
        Its header.
    decimal : str
        The decimal point.
    options : TableOptions
        Options of the user.
    records : callable
        Returns an iterator over the records that are not blank.
    """

    def __init__(
        self,
        name: str,
        header: TableHeader,
        decimal: str,
        options: TableOptions,
        records: Callable[[], Iterator[Record]],
    ) -> None:
        super().__init__(name, header.names, header.width, options)
        self.header, self.decimal, self.records = header, decimal, records

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with its line; raises `ValueError` for a row with more or fewer values."""
        for first, last, fields in self.records():
            if last <= self.header.lines:
                continue
            if len(fields) != self.width:
                more = ""
                if fields[0].lstrip().startswith("#") and not self.options.on_workers:
                    more = f"; if it is a comment, pass {self.options.spell('comment', '#')}"
                raise ValueError(
                    f"{self.name}: line {first}: found {len(fields)} values for {self.width} "
                    f"columns; give every row the same number of columns{more}"
                )
            yield first, fields

    def batches(
        self, numbers: Sequence[int], texts: Sequence[int], skip: int = 0
    ) -> Iterator[TableBatch]:
        """Read columns in Python; `skip`: rows that are left out at the beginning."""
        rows, missing = islice(self.rows(), skip, None), self.options.missing_values
        while part := list(islice(rows, _ROWS)):
            try:
                parsed = [
                    [parse_number(fields[i], self.decimal, missing) for i in numbers]
                    for _, fields in part
                ]
            except ValueError:
                self.explain_words(numbers)
                raise
            for i in texts:
                for line, fields in part:
                    if any("\udc80" <= sign <= "\udcff" for sign in fields[i]):
                        raise ValueError(
                            f"{self.name}: line {line}: is not text in UTF-8; pass "
                            f"{self.options.spell('encoding', 'cp1252')}, or save it as UTF-8"
                        )
            words = [object_array([fields[i] for _, fields in part]) for i in texts]
            yield TableBatch(np.array(parsed, dtype=np.float64), words)

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        found = [ColumnSurvey() for _ in range(self.width)]
        missing = self.options.missing_values
        for line, fields in islice(self.rows(), n_rows):
            for column, text in zip(found, fields, strict=True):
                word = text.strip()
                if word in missing:
                    column.missing += 1
                elif is_number(word, self.decimal):
                    column.numbers += 1
                else:
                    column.add_word(word, f"line {line}")
        return found

    def locate(self, row: int) -> str:
        line, _ = next(islice(self.rows(), row, None))
        return f"line {line}"

    def explain_words(self, wanted: Sequence[int]) -> None:
        """Raise `ValueError` if a wanted column holds words; all rows are read only if need be."""
        # Where texts may become numbers, the first rows are enough to begin with.
        few = () if self.options.on_workers else (_FIRST,)
        for n_rows in (*few, _SURVEYED, None):
            self.refuse_words(wanted, self.survey(n_rows))


def open_csv(text: TextFile, options: TableOptions, kind: str) -> "CsvTable":
    """Open a text: detect how it is written, and read its header.

    `kind`: the ending of the file's name, which suggests a separator.
    """
    csv_format = detect_format(text, options, "\t" if kind in (".tsv", ".tab") else ",")
    if csv_format.names is not None:
        header = TableHeader(len(csv_format.names), csv_format.names_line, csv_format.names)
        return CsvTable(text, csv_format, header, options)
    with closing(csv_records(text, csv_format, options)) as records:
        header = read_header(text.name, records, csv_format.decimal, options)
    return CsvTable(text, csv_format, header, options)


class CsvTable(RecordTable):
    """A CSV file; `csv_format` says how it is written."""

    def __init__(
        self, text: TextFile, csv_format: CsvFormat, header: TableHeader, options: TableOptions
    ) -> None:
        records = partial(csv_records, text, csv_format, options)
        super().__init__(text.name, header, csv_format.decimal, options, records)
        self.text, self.csv_format = text, csv_format
        if words := [*csv_format.notes, *header.notes]:
            changed = " (--sep, --decimal and --encoding change that)" if csv_format.notes else ""
            more = changed if options.shell else ""
            self.notes = [f"{self.name}: recognised {', '.join(words)}{more}"]
        # A float64 and its separator take at most 25 bytes, so that rows of numbers fit.
        self._block = max(_BLOCK, 64 * self.width)

    def batches(
        self, numbers: Sequence[int], texts: Sequence[int], skip: int = 0
    ) -> Iterator[TableBatch]:
        if find_pyarrow() is None or self.csv_format.sep == " ":  # to pyarrow every space separates
            yield from super().batches(numbers, texts, skip)
            return
        import pyarrow.csv

        count = 0
        try:
            for batch in self._read_with_pyarrow(pyarrow, numbers, texts):
                columns = [c.to_numpy(zero_copy_only=False) for c in batch.columns]
                none = np.empty((batch.num_rows, 0))
                points = np.column_stack([none, *columns[: len(numbers)]])
                yield TableBatch(points, columns[len(numbers) :])
                count += batch.num_rows
            return
        except (pyarrow.ArrowInvalid, UnicodeError) as error:
            if "Empty CSV" in str(error):
                return
            words = str(error)
        # pyarrow does not name the line. So the rows are read again in Python, up to the fault.
        try:
            self.explain_words(numbers)
        except ValueError as fault:
            if "found a field of more than" not in str(fault):  # pyarrow has no such limit
                raise
        if "straddling" in words:
            raise ValueError(
                f"{self.name}: found a line of more than {self._block:,} bytes; write shorter ones"
            )
        if word := re.search(r"CSV column #(\d+).*invalid value '(.*?)'", words):
            raise ValueError(
                f"{self.name}: column {self.show(int(word[1]))}: found {word[2]!r}; correct it, or "
                "choose columns of numbers"
            )
        # What only pyarrow refuses, such as blank lines that hold spaces, is read in Python.
        yield from super().batches(numbers, texts, skip=count)

    def _read_with_pyarrow(
        self, arrow: Any, numbers: Sequence[int], texts: Sequence[int]
    ) -> Iterator[Any]:
        # Threads of pyarrow read ahead, and must not call Python: one that did so after an error,
        # while the interpreter ends, would abort the process. So pyarrow gets a file, or memory.
        lent, plain = memoryview(b""), self.text.is_plain and is_utf8(self.csv_format.encoding)
        lacks_lines = self._lacks_lines()
        if isinstance(self.text.source, Path) and plain and not lacks_lines:
            file = arrow.OSFile(str(self.text.source))
        else:
            encoding = self.csv_format.encoding
            lines = (self._remaining_lines(),) if lacks_lines else ()
            lent = memoryview(self.text.to_utf8(encoding, *lines))
            file = arrow.BufferReader(lent)
        labels = [str(i) for i in range(self.width)]
        types = {labels[i]: arrow.float64() for i in numbers}
        types |= {labels[i]: arrow.string() for i in texts}
        read = arrow.csv.ReadOptions(
            column_names=labels,
            skip_rows=self.header.lines,
            block_size=self._block,
        )
        parse = arrow.csv.ParseOptions(delimiter=self.csv_format.sep, newlines_in_values=True)
        convert = arrow.csv.ConvertOptions(
            column_types=types,
            include_columns=[labels[i] for i in (*numbers, *texts)],
            null_values=list(self.options.missing_values),
            decimal_point=self.decimal,
        )
        try:
            yield from arrow.csv.open_csv(file, read, parse, convert)
        finally:
            del file  # it has the memory, too
            _take_back(lent)

    def _lacks_lines(self) -> bool:
        """Return True if lines after the header are left out, which pyarrow would read."""
        if any(lines.stop - 1 > self.header.lines for lines in self.options.skipped):
            return True
        comment = self.csv_format.comment.encode(
            self.csv_format.encoding.replace("utf-16", "utf-8")
        )
        if not comment:
            return False
        with self.text.open() as raw:  # a search, which is much faster than a copy of the lines
            for _ in range(self.header.lines):
                raw.readline()
            return any(comment in part for part in iter(partial(raw.read, _SEARCHED), b""))

    def _remaining_lines(self) -> Iterator[str]:
        """Yield all lines of the text, empty where they are left out."""
        with self.text.open() as raw:
            file = open_text(raw, self.csv_format.encoding)
            try:
                yield from remaining_lines(file, self.csv_format, self.options)
            finally:
                file.detach()


def open_text(raw: Any, encoding: str) -> io.TextIOWrapper:
    """Open bytes as a text; those that are not text in this encoding become surrogates."""
    encoding = "utf-8-sig" if is_utf8(encoding) else encoding
    return io.TextIOWrapper(raw, encoding, "surrogateescape", newline="")


def remaining_lines(
    lines: Iterable[str], csv_format: CsvFormat, options: TableOptions
) -> Iterable[str]:
    """Return lines, empty where they are skipped or comments."""
    lines = leave_out_lines(lines, options)
    if not csv_format.comment:
        return lines
    return leave_out_comments(lines, csv_format.comment, inline=csv_format.inline)


def _take_back(lent: memoryview) -> None:
    """Wait until pyarrow has released memory that Python owns.

    A thread of pyarrow that is still busy after an error releases it last, and takes the GIL for
    that. While the interpreter ends, the GIL ends the thread, and with it the process.
    """
    # At most some blocks are being parsed, which takes less than a second. After 30 seconds
    # something else holds the memory, and the command must not hang.
    for _ in range(30_000):
        try:
            return lent.release()
        except BufferError:  # pyarrow still has it
            time.sleep(0.001)
    return None


def csv_records(
    text: TextFile, csv_format: CsvFormat, options: TableOptions | None = None
) -> Generator[Record]:
    """Yield each record that is not blank: its first line, its last line, its fields.

    Bytes that are not text in this encoding become surrogates. Raises `ValueError`, with the line
    at which the record begins, for an open quote and for a huge record or field.
    """
    quotes = size = 0  # quotes and characters since the start of the record

    def read_lines(file: io.TextIOBase) -> Iterator[str]:
        nonlocal quotes, size
        while line := file.readline(_LONGEST + 1 - size):
            quotes += line.count('"')
            size += len(line)
            if size > _LONGEST:
                repair = "close its quotes, and " if quotes else ""
                raise ValueError(
                    f"found a record of more than {_LONGEST >> 20} million characters; {repair}"
                    "separate rows by ends of lines"
                )
            yield line

    with text.open() as raw:
        file = open_text(raw, csv_format.encoding)
        lines, line = remaining_lines(read_lines(file), csv_format, options or TableOptions()), 1
        reader = csv_reader(lines, csv_format.sep)
        try:
            for row in reader:
                quotes = size = 0
                if len(row) > 1 or (row and row[0].strip()):
                    yield line, reader.line_num, row
                line = reader.line_num + 1  # a record may span several lines
        except csv.Error:
            # A field of more than `csv.field_size_limit`: it is long, or its quote is not closed
            # in the rest of the file, of which no more is read than the longest record. By parts,
            # not by lines: that takes a fifth of the time.
            with suppress(UnicodeError):
                while quotes % 2 and size < _LONGEST and (rest := file.read(_PART)):
                    quotes += rest.count('"')
                    size += len(rest)
            most = csv.field_size_limit()
            fault = (
                f"found a field of more than {most:,} characters; shorten it, or close its quote"
            )
            if quotes % 2:
                fault = "found a quote that is not closed; close it, or remove it"
            raise ValueError(f"{text.name}: line {line}: {fault}") from None
        except ValueError as error:
            more = "; is it another encoding?" if isinstance(error, UnicodeError) else ""
            raise ValueError(f"{text.name}: line {line}: {error}{more}") from None
        finally:
            file.detach()
