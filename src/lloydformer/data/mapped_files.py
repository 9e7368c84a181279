"""Arrays mapped from files: scratch arrays on disk, and prefetching of mapped rows.

Scratch files are unnamed files in the folder for temporary files (`TMPDIR`). Their disk space is
released with the array, however the process ends.
"""

import ctypes
import errno
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from torch import Tensor

# Bytes of the largest scratch array in memory; larger ones use a scratch file. The documentation
# names this size (docs/data-files.md, docs/large-data.md).
_IN_MEMORY = 1 << 28
# None if the system has no such advice; rows are then loaded on first access.
_WILL_NEED = getattr(mmap, "MADV_WILLNEED", None)


def scratch_array(n_rows: int, *width: int, dtype: DTypeLike, of: int | None = None) -> np.ndarray:
    """Allocate an uninitialised array (n_rows, *width), on disk if it is large.

    `of`: total bytes of the arrays that are used together; by default the bytes of this one.
    """
    shape, kind = (n_rows, *width), np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if (of or size) <= _IN_MEMORY:
        return np.empty(shape, kind)
    with scratch_file() as file:
        try:
            # Reserve the disk space: writing to a mapping on a full disk would kill the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise _no_space(size, error) from None
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def scratch_file() -> IO[Any]:
    """Open an unnamed file in the folder for temporary files."""
    return tempfile.TemporaryFile(dir=os.environ.get("TMPDIR"))


def check_disk_space(size: int) -> None:
    """Raise `ValueError` if a scratch file of at least `size` bytes is needed and does not fit."""
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    if size > max(_IN_MEMORY, shutil.disk_usage(folder).free):
        raise _no_space(size, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def _no_space(size: int, error: OSError) -> ValueError:
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    return ValueError(
        f"{folder}: no room for a scratch file of {size / 1e6:.0f} MB "
        f"({error.strerror or error}); set TMPDIR to a folder with more"
    )


def concatenate(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Concatenate rows: in memory, or in a scratch file if they are large. Consumes the parts."""
    held: list[np.ndarray] = []
    size, parts = 0, iter(parts)
    for part in parts:
        held.append(np.ascontiguousarray(part))
        size += held[-1].nbytes
        if size > _IN_MEMORY:
            break
    else:
        if not held:
            return np.empty((0, 0))
        return np.concatenate(held) if len(held) > 1 else held[0]
    kind, width = held[0].dtype, held[0].shape[1]
    with scratch_file() as file:
        try:
            while held:
                held.pop(0).tofile(file)
            for part in parts:
                np.ascontiguousarray(part, dtype=kind).tofile(file)
            file.flush()
        except OSError as error:
            raise _no_space(file.tell(), error) from None
        n_rows = file.tell() // (kind.itemsize * width)
        return np.memmap(file, dtype=kind, mode="r", shape=(n_rows, width))


def prefetch_rows(rows: "Tensor") -> None:
    """Ask the system to load rows of a mapped file before they are read.

    Does not wait for the disk, and ignores failures.
    """
    if _WILL_NEED is None or rows.numel() == 0:
        return
    # The rows of a column-major array are a piece of each column.
    for piece in [rows] if rows.stride(1) == 1 else rows.unbind(dim=1):
        steps = zip(piece.shape, piece.stride(), strict=True)
        count = 1 + sum((size - 1) * step for size, step in steps)
        _advise(piece.data_ptr(), count * piece.element_size())


def _advise(address: int, length: int) -> None:
    """Call madvise directly: `mmap.madvise` needs the mapping object, and holds the GIL."""
    before = address % mmap.PAGESIZE
    start, size = ctypes.c_void_p(address - before), ctypes.c_size_t(length + before)
    ctypes.CDLL(None).madvise(start, size, _WILL_NEED)
