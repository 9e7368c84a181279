"""NPY and NPZ files: what they declare is compared with their size before an array is made.

NumPy's own readers allocate the declared shape first, so that a damaged header fills the memory.
"""

import math
import zlib
from io import BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from lloydformer.data.mapped_files import scratch_array

# Bytes in which the header of an array must end; NumPy writes 128, or more with named fields.
_HEADER = 1 << 14
# Bytes that are unpacked at a time; bounds temporary memory.
_CHUNK = 1 << 24
# An array that unpacks to more than 256 MB may be at most 100 times as large as its packed form;
# ordinary data stay far below.
_SUSPICIOUS = 1 << 28
_RATIO = 100
# Raised for damaged files; RuntimeError for a password or an unknown compression.
_DAMAGED = (ValueError, OSError, EOFError, BadZipFile, zlib.error, LZMAError, RuntimeError)


class ArrayHeader(NamedTuple):
    """The header of an array; `start` is its length in bytes."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype
    start: int

    @classmethod
    def read(cls, begin: bytes) -> "ArrayHeader":
        """Read the header from the first bytes; a longer one is refused."""
        file = BytesIO(begin)
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"its format has the version {version}")
        try:
            return cls(*readers[version](file), file.tell())
        except Exception as error:  # NumPy evaluates the header as a Python literal
            words = " ".join(str(error).split())[:200]
            raise ValueError(f"its header is damaged: {words}") from None

    def check(self, size: int) -> "ArrayHeader":
        """Return the header; raises `ValueError` if a file of this size cannot hold the array."""
        if self.dtype.hasobject:
            raise ValueError("it holds Python objects; points are numbers")
        if self.dtype.itemsize == 0:  # NumPy makes texts of one letter from texts of none
            raise ValueError(f"it declares {self.dtype}, values of 0 bytes; points are numbers")
        if any(length < 0 for length in self.shape):
            raise ValueError(f"it declares the shape {self.shape}")
        wanted = self.start + math.prod(self.shape) * self.dtype.itemsize
        if size < wanted:
            raise ValueError(
                f"it declares the shape {self.shape}, which takes {wanted:,} bytes, and holds "
                f"{size:,}"
            )
        return self


def map_npy(path: Path) -> np.ndarray:
    """Map the array of an NPY file; raises `ValueError` if it is not a whole one."""
    try:
        with path.open("rb") as file:
            ArrayHeader.read(file.read(_HEADER)).check(path.stat().st_size)
        return np.lib.format.open_memmap(path, mode="r")
    except _DAMAGED as error:
        raise ValueError(f"{path}: not a readable .npy file ({error})") from None


def read_npz(path: Path) -> np.ndarray:
    """Read the array X of an NPZ file, or its only array with two axes.

    A large array is unpacked to a scratch file. Raises `ValueError` if the file is damaged, or if
    it declares more numbers than it holds.
    """
    try:
        with ZipFile(path) as archive:
            arrays, names = {}, []
            for info in archive.infolist():
                names.append(info.filename.removesuffix(".npy"))
                with archive.open(info) as file:
                    header = ArrayHeader.read(file.read(_HEADER))
                if len(header.shape) == 2:
                    arrays[names[-1]] = info, header
            name = next(iter(arrays)) if len(arrays) == 1 else "X"
            if name not in arrays:
                raise ValueError(f"it holds {names[:20]}, and none of them is called X")
            return _unpack(archive, *arrays[name])
    except _DAMAGED as error:
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None


def _unpack(archive: ZipFile, info: ZipInfo, header: ArrayHeader) -> np.ndarray:
    header.check(info.file_size)
    if info.file_size > max(_SUSPICIOUS, _RATIO * info.compress_size):
        raise ValueError(
            f"it unpacks to {info.file_size:,} bytes, more than {_RATIO} times its size; if that "
            "is right, save the array as .npy"
        )
    rows, width = header.shape[::-1] if header.column_major else header.shape
    array = scratch_array(rows, width, dtype=header.dtype)
    target = array.reshape(-1).view(np.uint8)
    with archive.open(info) as file:
        file.read(header.start)
        for start in range(0, len(target), _CHUNK):
            wanted = min(_CHUNK, len(target) - start)
            part = file.read(wanted)
            if len(part) < wanted:
                raise EOFError("it ends early")
            target[start : start + wanted] = np.frombuffer(part, np.uint8)
    return array.T if header.column_major else array
