"""Arrays in memory, or on disk where they are large.

Scratch files are in the folder for temporary files (`TMPDIR`) and have no name: the disk is free
again when the array is gone, however the process ends.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

_IN_MEMORY = 1 << 28
"""Bytes that an array may take before it goes to a scratch file."""


def room(n_rows: int, *width: int, dtype: DTypeLike, of: int | None = None) -> np.ndarray:
    """An array to be written to, on disk where it, or what it is a part of, is large.

    of: the bytes of everything that belongs together.
    """
    shape, kind = (n_rows, *width), np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if (of or size) <= _IN_MEMORY:
        return np.empty(shape, kind)
    with _unnamed() as file:
        _reserve(file, size)
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def _unnamed() -> IO[Any]:
    return tempfile.TemporaryFile(dir=os.environ.get("TMPDIR"))


def _reserve(file: IO[Any], size: int) -> None:
    """Writing to a mapping for which the disk has no room would end the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise _no_room(size, error) from None


def _no_room(size: int, error: OSError) -> ValueError:
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    return ValueError(
        f"{folder}: no room for a scratch file of {size / 1e6:.0f} MB "
        f"({error.strerror or error}); set TMPDIR to a folder with more"
    )


def gathered(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All parts one below the other: in memory, or mapped from a scratch file if they are many."""
    held: list[np.ndarray] = []
    size, parts = 0, iter(parts)
    for part in parts:
        held.append(np.ascontiguousarray(part))
        size += held[-1].nbytes
        if size > _IN_MEMORY:
            return _spilled(held, parts)
    if not held:
        return np.empty((0, 0))
    return np.concatenate(held) if len(held) > 1 else held[0]


def _spilled(held: list[np.ndarray], rest: Iterator[np.ndarray]) -> np.ndarray:
    kind, width = held[0].dtype, held[0].shape[1]
    with _unnamed() as file:
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
