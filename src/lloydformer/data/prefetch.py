"""Reading ahead: the system is asked for rows of a mapped file before they are needed."""

import ctypes
import mmap
from functools import cache

from torch import Tensor

_WILL_NEED = getattr(mmap, "MADV_WILLNEED", None)
"""None where the system cannot be asked; then rows come when they are touched."""


def ask_for(rows: Tensor) -> None:
    """Bring these rows into memory soon. Waits for no disk, and is no error if it cannot be."""
    if _WILL_NEED is None or rows.numel() == 0:
        return
    for piece in [rows] if rows.stride(1) == 1 else rows.unbind(dim=1):  # in column order
        _advise(piece.data_ptr(), _span(piece))


def _span(piece: Tensor) -> int:
    """Bytes from the first number of a piece to its last."""
    steps = zip(piece.shape, piece.stride(), strict=True)
    return (1 + sum((size - 1) * step for size, step in steps)) * piece.element_size()


def _advise(address: int, length: int) -> None:
    """`mmap.madvise` would need the mapping itself, and would hold up all other threads."""
    before = address % mmap.PAGESIZE
    start, size = ctypes.c_void_p(address - before), ctypes.c_size_t(length + before)
    _system().madvise(start, size, _WILL_NEED)


@cache
def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None)
