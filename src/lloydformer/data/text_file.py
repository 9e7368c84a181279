"""Texts that can be read repeatedly: files, compressed files, standard input, bytes in memory."""

import bz2
import codecs
import gzip
import io
import lzma
import mmap
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from lloydformer.data.paths import STANDARD_INPUT

# By the first bytes of a file: other kinds, which have been given the name of a text.
_OTHER_KINDS = {
    b"PAR1": "a Parquet file",
    b"\x93NUM": "an .npy file",
    b"PK\3\4": "a workbook or .npz",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel",
}
# Bytes of a copy up to which it is in memory; larger ones are mapped from a scratch file. Less than
# for arrays (256 MB), as the array is filled while its text is held.
_IN_MEMORY = 1 << 26


def _open_zstandard(raw: Any) -> Any:
    try:
        import pyarrow

        return io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd"))
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise ValueError(
            '.zst files need pyarrow or zstandard: pip install "lloydformer[data]"'
        ) from None
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw))


# By the first bytes of a compressed file.
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _open_zstandard,
}


Buffer = bytes | mmap.mmap


class TextFile:
    """Bytes of a text that can be read repeatedly, unpacked if they are compressed.

    Parameters
    ----------
    name : str
        For messages.
    source : Path, bytes, mmap or callable
        The bytes, or a function that opens them at their beginning.
    plain : bool, optional
        The bytes are not compressed, whatever they begin with; None to look at the first ones.
    """

    def __init__(
        self, name: str, source: Path | Buffer | Callable[[], Any], plain: bool | None = None
    ) -> None:
        self.name, self.source, self._plain = name, source, plain

    @classmethod
    def at(cls, path: Path) -> "TextFile":
        """Return the text of a file; `-` is standard input, of which a copy is kept."""
        if str(path) != STANDARD_INPUT:
            return cls(str(path), path)
        stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
        if stream is None or sys.stdin.isatty():
            raise ValueError("standard input: is a terminal; pass a file, or pipe one into it")
        content = _copy(stream)
        if len(content) == 0:
            raise ValueError("standard input: is empty; pass rows of numbers")
        return cls("standard input", content)

    def _open_raw(self) -> io.BufferedReader:
        if isinstance(self.source, Path):
            return self.source.open("rb")
        if callable(self.source):
            return io.BufferedReader(self.source())
        return io.BufferedReader(_BufferReader(self.source))

    @property
    def is_plain(self) -> bool:
        """True if the bytes are not compressed."""
        if self._plain is None:
            with self._open_raw() as raw:
                self._plain = not raw.peek(8).startswith((*_OPENERS, *_OTHER_KINDS))
        return self._plain

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the bytes at their beginning; raises `ValueError` if they cannot be unpacked."""
        plain = self.is_plain
        try:
            with self._open_raw() as raw:
                begin = b"" if plain else raw.peek(8)
                for magic, kind in _OTHER_KINDS.items():
                    if begin.startswith(magic):
                        raise ValueError(
                            f"{self.name}: found {kind} where a text was expected; pass it as a "
                            "file with the ending of its kind"
                        )
                openers = (o for magic, o in _OPENERS.items() if begin.startswith(magic))
                with next(openers, nullcontext)(raw) as file:
                    yield file
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # Decompressors raise OSError without a number; the system's errors have one.
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(f"{self.name}: is damaged ({error}); compress it again") from None

    def read_begin(self, size: int) -> bytes:
        """Read the first bytes."""
        with self.open() as file:
            return file.read(size)

    def to_utf8(self, encoding: str, lines: Iterable[str] | None = None) -> Buffer:
        """Return all bytes, in UTF-8: in memory, or mapped from a scratch file.

        Bytes that are not text in this encoding stay as they are. `lines`: the text itself, if it
        is not to be as it is in the file.
        """
        if lines is not None:
            with _new_spool() as spool:
                spool.writelines(line.encode("utf-8", "surrogateescape") for line in lines)
                return _take_content(spool)
        if isinstance(self.source, Buffer) and self.is_plain and is_utf8(encoding):
            return self.source
        with self.open() as file:
            if not is_utf8(encoding):
                file = codecs.EncodedFile(file, "utf-8", encoding, "surrogateescape")
            return _copy(file)


def is_utf8(encoding: str) -> bool:
    """Return True for all names of UTF-8."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _copy(stream: Any) -> Buffer:
    """Copy a stream to memory, or to a scratch file if it is large."""
    with _new_spool() as spool:
        shutil.copyfileobj(stream, spool)
        return _take_content(spool)


def _new_spool() -> Any:
    return tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=os.environ.get("TMPDIR"))


def _take_content(spool: Any) -> Buffer:
    """Return what was written to a spool; it stays mapped when the spool is closed."""
    if spool.tell() <= _IN_MEMORY:
        spool.seek(0)
        return spool.read()
    spool.flush()
    return mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ)


class _BufferReader(io.RawIOBase):
    """Reads bytes that may be mapped from a file, without a copy of all of them."""

    def __init__(self, content: Buffer) -> None:
        self._view, self._position = memoryview(content), 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        part = self._view[self._position : self._position + len(target)]
        target[: len(part)] = part
        self._position += len(part)
        return len(part)
