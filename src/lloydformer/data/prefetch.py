"""Prefetch: ask the operating system to load rows of a mapped file before they are needed."""

import ctypes
import mmap
from functools import cache

from torch import Tensor

_WILL_NEED = getattr(mmap, "MADV_WILLNEED", None)
"""None if the system has no such advice; rows are then loaded on first access."""


def prefetch_rows(rows: Tensor) -> None:
    """Prefetch these rows. Does not wait for the disk, and ignores failures."""
    if _WILL_NEED is None or rows.numel() == 0:
        return
    for piece in [rows] if rows.stride(1) == 1 else rows.unbind(dim=1):  # else column-major
        _advise(piece.data_ptr(), _span(piece))


def _span(piece: Tensor) -> int:
    """Bytes from the first to the last number of a piece."""
    steps = zip(piece.shape, piece.stride(), strict=True)
    return (1 + sum((size - 1) * step for size, step in steps)) * piece.element_size()


def _advise(address: int, length: int) -> None:
    """Call madvise directly: `mmap.madvise` needs the mapping object, and holds the GIL."""
    before = address % mmap.PAGESIZE
    start, size = ctypes.c_void_p(address - before), ctypes.c_size_t(length + before)
    _system().madvise(start, size, _WILL_NEED)


@cache
def _system() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None)
