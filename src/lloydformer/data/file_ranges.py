"""Ranges of files, each of which one worker reads: row groups, rows of an array, lines of a text.

Files are opened with fsspec, so they may be on this machine, on s3, or wherever it reads from.
Separator, decimal point and header of a text are detected as in one process, in its first bytes.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from lloydformer.data.csv_format import CsvFormat, TableHeader
from lloydformer.data.csv_table import CsvTable, open_csv
from lloydformer.data.numpy_files import ArrayHeader
from lloydformer.data.paths import TEXTS, file_kind
from lloydformer.data.table_options import TableOptions
from lloydformer.data.text_file import TextFile
from lloydformer.data.typed_tables import ArrowTable, TypedTable, import_pyarrow, stack_columns

# Target size of a range, in bytes. A worker holds the bytes of a range and its numbers in each of
# its threads; but every range is a request to the storage, which must be worth its delay.
RANGE_BYTES = 1 << 26
# Bytes in which a text is detected, and in which the header of a text or of an array must end. Less
# than in one process, as they may come over a network and are read for every file.
_BEGINNING = 1 << 20
_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True)
class FileRange:
    """Some rows of a file.

    Attributes
    ----------
    header : TypedTable
        The columns of the file; its name is an address.
    start, stop : int
        Row groups of a Parquet file, rows of an NPY file, bytes of a text (stop -1: to its end).
    first_row : int or None
        The number of the first row in the file, if it is known.
    csv_format : CsvFormat
        How a text is written.
    """

    header: TypedTable
    start: int
    stop: int
    first_row: int | None = None
    csv_format: CsvFormat = CsvFormat()  # noqa: RUF009 (frozen)

    @property
    def words(self) -> str:
        """The range for messages."""
        name = self.header.name
        unit = {".parquet": "row groups", ".npy": "rows"}.get(_url_kind(name), "bytes")
        return name if self.stop < 0 else f"{name}, {unit} {self.start} to {self.stop}"

    def locate(self, row: int) -> str:
        """Return the place of a row of the range, counted from 1 in the file if possible."""
        if self.first_row is None:
            return f"{self.words}, row {row + 1} of these"
        return f"{self.header.name}, row {self.first_row + row + 1}"


def find_files(pattern: str) -> list[str]:
    """Return the files of a pattern with * and ?, of a folder, or the file itself, by their names.

    Raises `ValueError` if there are none, or files of a kind that is not read in ranges.
    """
    kinds = (".parquet", ".npy", *TEXTS)
    with _name_errors(pattern):
        file = RemoteFile(pattern)
        fs, path = file.fs, file.path
        if fs.isdir(path):
            names = map(str, fs.ls(path, detail=False))
            paths = sorted(name for name in names if _url_kind(name) in kinds)
        else:  # a name with [ may be that of a file
            paths = [path] if fs.exists(path) else sorted(fs.glob(path))
    if not paths:
        raise ValueError(f"{pattern}: no such file; check the path, and put patterns in quotes")
    urls = [str(fs.unstrip_protocol(path)) for path in paths]
    for url in urls:
        if _url_kind(url) not in kinds:
            raise ValueError(
                f"{url}: is not read by workers; pass .parquet, .npy or .csv files, or leave out "
                "--cluster and --workers"
            )
    return urls


def split_file(url: str, options: TableOptions, size: int = RANGE_BYTES) -> list[FileRange]:
    """Return the ranges that a file is read in, at least one. Only its beginning is read here."""
    with _name_errors(url):
        return _remote_file(url).split(options, size)


def read_range(part: FileRange, columns: Sequence[int]) -> np.ndarray:
    """Read the rows of a range, (m, d): float32 if all numbers are, otherwise float64."""
    with _name_errors(part.words):
        return _remote_file(part.header.name).read(part, columns)


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Raise errors of file systems and formats as `ValueError` with the name of the file."""
    try:
        yield
    except (ImportError, OSError, ValueError, TypeError, EOFError, KeyError, csv.Error) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        known = words if words.startswith(name) else f"{name}: {words[:300]}"
        raise ValueError(known) from None


def _url_kind(url: str) -> str:
    """Return the ending that tells what a file holds.

    >>> _url_kind("s3://bucket/points.csv.gz"), _url_kind("zip://a.npy::/tmp/all.zip")
    ('.csv', '.zip')
    """
    return file_kind(Path(PurePosixPath(url.rpartition("::")[2]).name))


def _remote_file(url: str) -> "RemoteParquet | RemoteArray | RemoteText":
    kinds: dict[str, Any] = {".parquet": RemoteParquet, ".npy": RemoteArray}
    return kinds.get(_url_kind(url), RemoteText)(url)


class RemoteFile:
    """A file of any file system of fsspec."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url
        self.fs, self.path = fsspec.core.url_to_fs(url)

    def open(self) -> Any:
        return self.fs.open(self.path, "rb")


# A function of the module, not a lambda: headers are pickled on their way to workers.
def _read_nothing(names: list[str]) -> tuple[Any, ...]:
    """Return no batches: the header of a file has columns, and no rows."""
    return ()


class RemoteParquet(RemoteFile):
    """A Parquet file; ranges are row groups."""

    def split(self, options: TableOptions, size: int) -> list[FileRange]:
        with self.open() as file:
            parquet = import_pyarrow().parquet.ParquetFile(file)
            schema, metadata = parquet.schema_arrow, parquet.metadata
        header = ArrowTable(self.url, schema, _read_nothing, options)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        rows = [0, *accumulate(group.num_rows for group in groups)]
        ends, held = [0], 0
        for number, group in enumerate(groups, start=1):
            held += group.total_byte_size
            if held >= size or number == len(groups):
                ends.append(number)
                held = 0
        ranges = [FileRange(header, a, b, rows[a]) for a, b in pairwise(ends)]
        return ranges or [FileRange(header, 0, 0, 0)]  # a file without rows has columns

    def read(self, part: FileRange, columns: Sequence[int]) -> np.ndarray:
        names = [part.header.label(i) for i in columns]
        with self.open() as file:
            parquet = import_pyarrow().parquet.ParquetFile(file)
            table = parquet.read_row_groups(list(range(part.start, part.stop)), columns=names)
        chunks = [table.column(name).combine_chunks() for name in names]
        return stack_columns(chunks, table.num_rows)


class RemoteArray(RemoteFile):
    """An NPY file; ranges are rows."""

    def _read_header(self, file: Any) -> ArrayHeader:
        return ArrayHeader.read(file.read(_BEGINNING)).check(self.fs.size(self.path))

    def split(self, options: TableOptions, size: int) -> list[FileRange]:
        with self.open() as file:
            shape, _, dtype, _ = self._read_header(file)
        if len(shape) != 2 or dtype.kind not in "iubf":
            raise ValueError(f"found dtype {dtype} and shape {shape}; points are rows of numbers")
        header = TypedTable(self.url, None, shape[1], options)
        step = max(1, size // max(1, shape[1] * dtype.itemsize))
        starts = range(0, max(shape[0], 1), step)
        return [FileRange(header, a, min(a + step, shape[0]), a) for a in starts]

    def read(self, part: FileRange, columns: Sequence[int]) -> np.ndarray:
        with self.open() as file:
            (n_rows, width), column_major, dtype, start = self._read_header(file)
            first, stop = (0, n_rows) if column_major else (part.start, part.stop)
            file.seek(start + first * width * dtype.itemsize)
            content = file.read((stop - first) * width * dtype.itemsize)
        array = np.frombuffer(content, dtype=dtype)
        if column_major:  # the rows of a range are all over the file
            rows = array.reshape(width, n_rows).T[part.start : part.stop]
        else:
            rows = array.reshape(-1, width)
        precision = np.float32 if dtype == np.float32 else np.float64
        return np.array(rows[:, list(columns)], dtype=precision, order="C")


class RemoteText(RemoteFile):
    """A text; ranges are bytes, and have the lines that begin in them.

    A compressed text is one range.
    """

    def split(self, options: TableOptions, size: int) -> list[FileRange]:
        text = TextFile(self.url, self.open)
        begin = text.read_begin(_BEGINNING)
        ends = [match.end() for match in _LINE_END.finditer(begin)]
        if len(begin) == _BEGINNING:
            if not ends:
                raise ValueError(
                    f"its first line has more than {_BEGINNING:,} bytes; separate rows by ends of "
                    "lines, or leave out --cluster and --workers"
                )
            begin = begin[: ends[-1]]
        # Ranges are cut after bytes "\n", which may be half of a character in UTF-16.
        try:
            if "\0" in begin.decode("utf-8"):
                raise UnicodeError
        except UnicodeError:
            raise ValueError(
                "is not text in UTF-8; save it as UTF-8, or leave out --cluster and --workers"
            ) from None
        beginning = TextFile(self.url, begin, plain=True)
        table = open_csv(beginning, options, _url_kind(self.url))
        header = TypedTable(self.url, table.names, table.width, options)
        skip, lines = 0, table.header.lines
        if lines:
            skip = ends[lines - 1] if lines <= len(ends) else len(begin)
        # Ranges are cut at "\n"; a text with other ends of lines or a compressed one is one range.
        if b"\n" not in begin or not text.is_plain:
            return [FileRange(header, skip, -1, 0, table.csv_format)]
        stop = self.fs.size(self.path)
        starts = [*range(skip, max(stop, skip + 1), size), stop]
        return [FileRange(header, a, b, None, table.csv_format) for a, b in pairwise(starts)]

    def read(self, part: FileRange, columns: Sequence[int]) -> np.ndarray:
        from fsspec.utils import read_block

        header = part.header
        if part.stop < 0:
            with TextFile(self.url, self.open).open() as file:
                file.read(part.start)  # not every stream can seek
                content = file.read()
        else:
            # From one byte earlier to one byte earlier: `read_block` begins and ends after the
            # first end of a line that it finds there, so it returns the lines that begin here.
            start = max(part.start - 1, 0)
            with self.open() as file:
                content = read_block(file, start, part.stop - 1 - start, b"\n")
        text = TextFile(part.words, content, plain=True)
        no_lines = TableHeader(header.width, 0, header.names)  # the header is not in this range
        table = CsvTable(text, part.csv_format, no_lines, header.options)
        batches = [batch.numbers for batch in table.batches(columns, [])] if content.strip() else []
        return np.concatenate([np.empty((0, len(columns))), *batches])
