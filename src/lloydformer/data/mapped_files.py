"""Scratch arrays: in memory, or mapped from a scratch file on disk if they are large.

Scratch files are unnamed files in the folder for temporary files (`TMPDIR`). Their disk space is
released with the array, however the process ends.
"""

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

_IN_MEMORY = 1 << 28
"""Largest size of an array in memory, in bytes; larger ones use a scratch file."""


def scratch_array(n_rows: int, *width: int, dtype: DTypeLike, of: int | None = None) -> np.ndarray:
    """Allocate an uninitialised array (n_rows, *width), on disk if it is large.

    `of`: total bytes of the arrays that are used together; by default the bytes of this one.
    """
    shape, kind = (n_rows, *width), np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if (of or size) <= _IN_MEMORY:
        return np.empty(shape, kind)
    with _scratch_file() as file:
        _reserve(file, size)
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def _scratch_file() -> IO[Any]:
    return tempfile.TemporaryFile(dir=os.environ.get("TMPDIR"))


def _reserve(file: IO[Any], size: int) -> None:
    """Reserve disk space: writing to a mapping on a full disk would kill the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise _no_room(size, error) from None


def check_room(size: int) -> None:
    """Raise `ValueError` if a scratch file of at least `size` bytes is needed and does not fit."""
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    if size > max(_IN_MEMORY, shutil.disk_usage(folder).free):
        raise _no_room(size, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def _no_room(size: int, error: OSError) -> ValueError:
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
            return _spill(held, parts)
    if not held:
        return np.empty((0, 0))
    return np.concatenate(held) if len(held) > 1 else held[0]


def _spill(held: list[np.ndarray], rest: Iterator[np.ndarray]) -> np.ndarray:
    """Write the parts to a scratch file, and map it."""
    kind, width = held[0].dtype, held[0].shape[1]
    with _scratch_file() as file:
        try:
            while held:
                held.pop(0).tofile(file)
            for part in rest:
                np.ascontiguousarray(part, dtype=kind).tofile(file)
            file.flush()
        except OSError as error:
            raise _no_room(file.tell(), error) from None
        n_rows = file.tell() // (kind.itemsize * width)
        return np.memmap(file, dtype=kind, mode="r", shape=(n_rows, width))
