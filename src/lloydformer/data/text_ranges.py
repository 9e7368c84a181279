"""Texts wherever fsspec reads from, in ranges of bytes that end with a line.

Separator, decimal point and header are recognised as in one process, in the first bytes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.byte_source import BytesInMemory, ByteSource
from lloydformer.data.csv_source import CsvSource, open_csv
from lloydformer.data.file_header import FileHeader, FileRange, kind_of_url
from lloydformer.data.table_header import TableHeader
from lloydformer.data.table_options import TableOptions

_BEGINNING = 1 << 20
"""Bytes in which a text is recognised; its header must end in them."""
_LINE_END = re.compile(rb"\r\n?|\n")


class RemoteText(ByteSource):
    """A text of a file system of fsspec, unpacked if it is compressed.

    Parameters
    ----------
    url : str
        Its address, for messages.
    fs : fsspec.AbstractFileSystem
        The file system.
    path : str
        The file there.
    """

    def __init__(self, url: str, fs: Any, path: str) -> None:
        super().__init__(Path(path))
        self.name, self.fs, self.remote = url, fs, path

    def _raw(self) -> Any:
        return self.fs.open(self.remote, "rb")


def text_ranges(source: RemoteText, options: TableOptions, size: int) -> list[FileRange]:
    """Ranges of about `size` bytes; a compressed text is one range."""
    begin = _beginning(source)
    default = "\t" if kind_of_url(source.name) in (".tsv", ".tab") else ","
    table = open_csv(BytesInMemory(source.name, begin), options, default)
    skip = 0 if table.names is None else _length_of_lines(begin, table.header.lines)
    header = FileHeader(source.name, table.names, table.width, written=table.written, skip=skip)
    if b"\n" not in begin or not source.is_plain_file:
        return [FileRange(header, skip, -1, first_row=0)]
    stop = source.fs.size(source.remote)
    starts = list(range(skip, max(stop, skip + 1), size))
    return [FileRange(header, a, b) for a, b in zip(starts, [*starts[1:], stop], strict=True)]


def _beginning(source: RemoteText) -> bytes:
    """Whole lines at the beginning of a text."""
    begin = source.begin(_BEGINNING)
    if len(begin) == _BEGINNING:
        ends = [found.end() for found in _LINE_END.finditer(begin)]
        if not ends:
            raise ValueError(
                f"its first line has more than {_BEGINNING:,} bytes; separate rows by ends of "
                "lines, or leave out --cluster and --workers"
            )
        begin = begin[: ends[-1]]
    if not _is_utf8(begin):
        raise ValueError(
            "is not text in UTF-8; save it as UTF-8, or leave out --cluster and --workers"
        )
    return begin


def _is_utf8(begin: bytes) -> bool:
    try:
        return "\0" not in begin.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _length_of_lines(begin: bytes, count: int) -> int:
    """Bytes of the first lines."""
    ends = [found.end() for found in _LINE_END.finditer(begin)]
    return ends[count - 1] if count <= len(ends) else len(begin)


def read_lines(
    part: FileRange, source: RemoteText, columns: Sequence[int], options: TableOptions
) -> np.ndarray:
    """The lines that begin in a range, as rows (m, d)."""
    header = part.header
    content = _whole(part, source) if part.stop < 0 else _lines(part, source)
    fields = header.names or ("",) * header.width
    table = CsvSource(
        BytesInMemory(part.words, content), header.written, TableHeader(fields, 0, header.names),
        options,
    )  # fmt: skip
    batches = [batch.numbers for batch in table.batches(columns, [])] if content.strip() else []
    return np.concatenate([np.empty((0, len(columns))), *batches])


def _whole(part: FileRange, source: RemoteText) -> bytes:
    with source.open() as file:
        file.read(part.start)  # not every stream can seek
        return file.read()


def _lines(part: FileRange, source: RemoteText) -> bytes:
    """The last line may end after the range."""
    with source.fs.open(source.remote, "rb") as file:
        file.seek(max(part.start - 1, 0))
        if part.start > part.header.skip:
            file.readline()  # the line before begins in another range
        else:
            file.seek(part.start)
        content = file.read(max(0, part.stop - file.tell()))
        if content and not content.endswith(b"\n"):
            content += file.readline()
    return content
