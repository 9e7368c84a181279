"""CSV files: read by pyarrow where it is installed, else in Python."""

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import numpy as np

from lloydformer.data.byte_source import ByteSource
from lloydformer.data.columns import ColumnFinder
from lloydformer.data.csv_format import CsvFormat, recognise
from lloydformer.data.csv_records import csv_records
from lloydformer.data.csv_values import MISSING_VALUES
from lloydformer.data.record_source import RecordSource
from lloydformer.data.table_header import TableHeader, find_header
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import TableBatch

_BLOCK = 1 << 24
"""Bytes of a CSV file that are parsed at a time, unless it has many columns."""
_IN_MEMORY = 1 << 26
"""Bytes of a compressed or recoded file up to which it is unpacked in memory."""
_BELOW = 200
"""Records that a header is compared with."""


class CsvSource(RecordSource):
    """A CSV file; `written` says how it is written."""

    def __init__(
        self, source: ByteSource, written: CsvFormat, header: TableHeader, options: TableOptions
    ) -> None:
        super().__init__(source.name, header, written.decimal, options)
        self.source, self.written = source, written

    def records(self) -> Iterator[tuple[int, int, list[str]]]:
        return csv_records(self.source, self.written)

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        """What pyarrow refuses is read in Python, which finds the words for the error."""
        pyarrow = None if self.written.sep == " " else _pyarrow()  # it counts every space
        if pyarrow is None:
            yield from self.plain_batches(numbers, texts)
            return
        done = 0
        try:
            with (
                self._file(pyarrow) as (file, encoding),
                self._open(pyarrow, file, encoding, numbers, texts) as stream,
            ):
                for batch in stream:
                    yield _batch(batch, len(numbers))
                    done += batch.num_rows
            return
        except pyarrow.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            words = str(error)
        self._explain(words, numbers)
        yield from self.plain_batches(numbers, texts, skip=done)

    @contextmanager
    def _file(self, arrow: Any) -> Iterator[tuple[Any, str]]:
        """The file for pyarrow, and its encoding.

        Threads of pyarrow read ahead. Those that call Python must not be left behind after an
        error: they would abort the process at its end. So pyarrow gets a file that it can read
        alone, unless that is large and compressed or in another encoding.
        """
        encoding = self.written.encoding
        plain = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        if plain and self.source.is_plain_file:
            with arrow.OSFile(str(self.source.path)) as native:
                yield native, encoding
            return
        if plain and self.source.content is not None:
            yield arrow.BufferReader(self.source.content), encoding
            return
        with self.source.open() as file:
            begin = file.read(_IN_MEMORY + 1)
            if len(begin) > _IN_MEMORY:
                file.seek(0)
                yield file, encoding
                return
        text = begin if plain else begin.decode(encoding).encode()
        yield arrow.BufferReader(text), encoding if plain else "utf-8"

    def _open(
        self, arrow: Any, file: Any, encoding: str, numbers: Sequence[int], texts: Sequence[int]
    ) -> Any:
        labels = [str(i) for i in range(self.width)]
        kinds = {**{labels[i]: arrow.float64() for i in numbers},
                 **{labels[i]: arrow.string() for i in texts}}  # fmt: skip
        read = arrow.csv.ReadOptions(
            column_names=labels, skip_rows=self.header.lines if self.names else 0,
            block_size=self._block, encoding=encoding,
        )  # fmt: skip
        parse = arrow.csv.ParseOptions(delimiter=self.written.sep, newlines_in_values=True)
        convert = arrow.csv.ConvertOptions(
            column_types=kinds, include_columns=[labels[i] for i in (*numbers, *texts)],
            null_values=list(MISSING_VALUES), decimal_point=self.decimal,
        )  # fmt: skip
        return arrow.csv.open_csv(file, read, parse, convert)

    @property
    def _block(self) -> int:
        """Bytes that are parsed at a time; a line of the file must fit in them."""
        return max(_BLOCK, 64 * self.width)

    def _explain(self, error: str, numbers: Sequence[int]) -> None:
        """Raise ValueError with the fault that made pyarrow refuse the file, if there is one."""
        try:
            self.refuse_words(numbers)
        except ValueError as fault:
            if "found a field of more than" not in str(fault):
                raise
        if "straddling" in error:
            raise ValueError(f"{self.name}: found a line of more than {self._block:,} bytes; write "
                             "shorter ones")  # fmt: skip
        if word := re.search(r"CSV column #(\d+).*invalid value '(.*?)'", error):
            shown = ColumnFinder(self.name, self.names, self.width).shown(int(word[1]))
            raise ValueError(f"{self.name}: column {shown}: found {word[2]!r}; correct it, or "
                             "choose columns of numbers")  # fmt: skip


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow


def _batch(batch: Any, count: int) -> TableBatch:
    columns = batch.columns
    numbers = [c.to_numpy(zero_copy_only=False) for c in columns[:count]]
    points = np.column_stack(numbers) if numbers else np.empty((batch.num_rows, 0))
    return TableBatch(points, [c.to_numpy(zero_copy_only=False) for c in columns[count:]])


def open_csv(
    source: ByteSource, options: TableOptions, default: str, expected: Sequence[str] | None = None
) -> CsvSource:
    """Open a CSV file: recognise how it is written, and read its header.

    `default`: the separator that the file's name stands for; `expected`: names that a header may
    have.
    """
    written = recognise(source, options, default)
    records = csv_records(source, written)
    first = next(records, None)
    if first is None:
        raise ValueError(f"{source.name}: found no rows; points are rows of numbers")
    below = [] if options.header is not None else _below(records)
    records.close()  # type: ignore[attr-defined]
    header = find_header(source.name, first[1:], below, written.decimal, options, expected)
    return CsvSource(source, written, header, options)


def _below(records: Iterator[tuple[int, int, list[str]]]) -> list[list[str]]:
    """Some records; fewer if one cannot be read, which is an error only if it is wanted."""
    found: list[list[str]] = []
    with suppress(ValueError):
        found.extend(fields for _, _, fields in islice(records, _BELOW))
    return found
