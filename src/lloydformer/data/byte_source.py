"""Bytes that can be read again and again: files, compressed files, and standard input."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from lloydformer.data.paths import STANDARD_INPUT

_OTHER = {b"PAR1": "a Parquet file", b"\x93NUM": "an .npy file", b"PK\3\4": "a workbook or .npz",
          b"\xd0\xcf\x11\xe0": "a workbook of old Excel"}  # fmt: skip
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class ByteSource:
    """The bytes of a file, unpacked if it is compressed; `-` is standard input.

    Standard input is copied to a scratch file, so that it can be read more than once; only one
    reader at a time may use it.

    Parameters
    ----------
    path : Path
        The file.
    """

    content: bytes | None = None
    """All bytes, if they are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = "standard input" if str(path) == STANDARD_INPUT else str(path)

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Open the bytes at their beginning; raises ValueError if they cannot be unpacked."""
        try:
            with self._raw() as raw, _unpacked(self.name, raw) as file:
                yield file
        except _DAMAGED as error:
            raise ValueError(f"{self.name}: is damaged ({error}); compress it again") from None
        except OSError as error:
            if error.errno is None:  # of a decompressor; the system's errors have a number
                raise ValueError(f"{self.name}: is damaged ({error}); compress it again") from None
            raise

    @property
    def is_plain_file(self) -> bool:
        """Whether it is a file that is not compressed."""
        if str(self.path) == STANDARD_INPUT:
            return False
        with self._raw() as raw:
            first = raw.read(8)
        return not any(first.startswith(magic) for magic in (*_OPENERS, *_OTHER))

    def begin(self, size: int) -> bytes:
        """The first bytes."""
        with self.open() as file:
            return file.read(size)

    def _raw(self) -> Any:
        if str(self.path) != STANDARD_INPUT:
            return self.path.open("rb")
        os.lseek(self._copied, 0, os.SEEK_SET)
        return open(os.dup(self._copied), "rb")

    @cached_property
    def _copied(self) -> int:
        """The descriptor of a scratch file with all that stands on standard input."""
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        if stream is None or sys.stdin.isatty():
            raise ValueError("standard input: is a terminal; pass a file, or pipe one into it")
        with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as copy:
            shutil.copyfileobj(stream, copy)
            if copy.tell() == 0:
                raise ValueError("standard input: is empty; pass rows of numbers")
            copy.flush()
            descriptor = os.dup(copy.fileno())
        weakref.finalize(self, os.close, descriptor)
        return descriptor


class BytesInMemory(ByteSource):
    """Bytes that are in memory, and not compressed.

    Parameters
    ----------
    name : str
        What they are, for messages.
    content : bytes
        All of them.
    """

    is_plain_file = False

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.content = name, content

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Open the bytes at their beginning."""
        yield io.BytesIO(self.content or b"")


@contextmanager
def _unpacked(name: str, raw: Any) -> Iterator[io.BufferedIOBase]:
    first = raw.read(8)
    raw.seek(0)
    for magic, kind in _OTHER.items():
        if first.startswith(magic):
            raise ValueError(f"{name}: found {kind} where a text was expected; pass it as a file "
                             "with the ending of its kind")  # fmt: skip
    opener = next((opener for magic, opener in _OPENERS.items() if first.startswith(magic)), None)
    if opener is None:
        yield raw
        return
    with opener(raw) as file:
        yield file


def _zstandard(raw: Any) -> Any:
    try:
        import pyarrow

        return io.BufferedReader(_Readable(pyarrow.CompressedInputStream(raw, "zstd")))
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise ValueError(
            '.zst files need pyarrow or zstandard: pip install "lloydformer[data]"'
        ) from None
    return io.BufferedReader(_Readable(zstandard.ZstdDecompressor().stream_reader(raw)))


_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _zstandard,
}
"""By the first bytes of compressed files."""


class _Readable(io.RawIOBase):
    """A stream of pyarrow for `io.BufferedReader`."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)
