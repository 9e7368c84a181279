"""NPY and NPZ files: what they declare is compared with their size before an array is made."""

import math
import zlib
from collections.abc import Callable
from io import BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from lloydformer.data.scratch import scratch_array

_HEADER = 1 << 14
"""Bytes in which the header of an array must end."""
_CHUNK = 1 << 24
"""Bytes that are unpacked at a time."""
_SUSPICIOUS = 1 << 28
"""Bytes of an unpacked array beyond which it may not be much larger than its packed form."""
_RATIO = 100
"""The largest ratio of a large array to its packed form; ordinary data stay far below."""
_UNREADABLE = (
    ValueError, OSError, EOFError, BadZipFile, zlib.error, LZMAError, RuntimeError,
)  # fmt: skip
"""Raised for damaged files; RuntimeError for a password or an unknown compression."""


class _Declared(NamedTuple):
    """The header of an array, and its length in bytes."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype
    start: int


def map_npy(path: Path) -> np.ndarray:
    """Map the array of an NPY file; raises `ValueError` if it is not a whole one."""
    try:
        with path.open("rb") as file:
            _check_size(_declared(file.read(_HEADER)), path.stat().st_size)
        return np.lib.format.open_memmap(path, mode="r")
    except _UNREADABLE as error:
        raise ValueError(f"{path}: not a readable .npy file ({error})") from None


def declared_array(begin: bytes, size: int) -> _Declared:
    """Shape, order, dtype and first byte of the array in an NPY file of a size, by its beginning.

    Raises ValueError if the file cannot hold it.
    """
    declared = _declared(begin)
    _check_size(declared, size)
    return declared


def read_npz(path: Path) -> np.ndarray:
    """Read the array X of an NPZ file, or its only array with two axes.

    A large array is unpacked to a scratch file. Raises `ValueError` if the file is damaged, or if
    it declares more numbers than it holds.
    """
    try:
        with ZipFile(path) as archive:
            return _unpack(archive, *_chosen(archive))
    except _UNREADABLE as error:
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None


def _chosen(archive: ZipFile) -> tuple[ZipInfo, _Declared]:
    found = {}
    for info in archive.infolist():
        with archive.open(info) as file:
            declared = _declared(file.read(_HEADER))
        if len(declared.shape) == 2:
            found[info.filename.removesuffix(".npy")] = info, declared
    name = "X" if "X" in found else next(iter(found), "") if len(found) == 1 else None
    if name is None or name not in found:
        names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
        raise ValueError(f"it holds {names[:20]}, and none of them is called X")
    return found[name]


def _declared(begin: bytes) -> _Declared:
    """Read the header from the first bytes; a longer one is refused."""
    first = BytesIO(begin)
    version = np.lib.format.read_magic(first)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"its format has the version {version}")
    try:
        return _Declared(*readers[version](first), first.tell())
    except Exception as error:  # NumPy evaluates the header as a Python literal
        raise ValueError(f"its header is damaged: {' '.join(str(error).split())[:200]}") from None


def _check_size(declared: _Declared, size: int) -> None:
    if declared.dtype.hasobject:
        raise ValueError("it holds Python objects; points are numbers")
    if declared.dtype.itemsize == 0:  # NumPy makes texts of one letter from texts of none
        raise ValueError(f"it declares {declared.dtype}, values of 0 bytes; points are numbers")
    if any(length < 0 for length in declared.shape):
        raise ValueError(f"it declares the shape {declared.shape}")
    wanted = declared.start + math.prod(declared.shape) * declared.dtype.itemsize
    if size < wanted:
        raise ValueError(
            f"it declares the shape {declared.shape}, which takes {wanted:,} bytes, and holds "
            f"{size:,}"
        )


def _unpack(archive: ZipFile, info: ZipInfo, declared: _Declared) -> np.ndarray:
    _check_size(declared, info.file_size)
    if info.file_size > max(_SUSPICIOUS, _RATIO * info.compress_size):
        raise ValueError(
            f"it unpacks to {info.file_size:,} bytes, more than {_RATIO} times its size; if that "
            "is right, save the array as .npy"
        )
    rows, width = declared.shape[::-1] if declared.column_major else declared.shape
    array = scratch_array(rows, width, dtype=declared.dtype)
    with archive.open(info) as file:
        file.read(declared.start)
        _fill(array.reshape(-1).view(np.uint8), file.read)
    return array.T if declared.column_major else array


def _fill(target: np.ndarray, read: Callable[[int], bytes]) -> None:
    """Read the bytes of an array, a chunk at a time."""
    for start in range(0, len(target), _CHUNK):
        part = read(min(_CHUNK, len(target) - start))
        target[start : start + len(part)] = np.frombuffer(part, np.uint8)
        if len(part) < min(_CHUNK, len(target) - start):
            raise EOFError("it ends early")
