"""Parts of an array put together: in memory, or on disk where they are many."""

import os
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

_IN_MEMORY = 1 << 28
"""Bytes that an array may take before it goes to a scratch file."""


def gathered(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All parts one below the other: in memory, or mapped from a scratch file if they are many."""
    held: list[np.ndarray] = []
    parts = iter(parts)
    for part in parts:
        held.append(np.ascontiguousarray(part))
        if sum(p.nbytes for p in held) > _IN_MEMORY:
            return _spilled(held, parts)
    if not held:
        return np.empty((0, 0))
    return np.concatenate(held) if len(held) > 1 else held[0]


def _spilled(held: list[np.ndarray], rest: Iterator[np.ndarray]) -> np.ndarray:
    """The scratch file has no name any more: the disk is free again when the array is gone."""
    kind, width = held[0].dtype, held[0].shape[1]
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as file:
        for part in held:
            part.tofile(file)
        for part in rest:
            np.ascontiguousarray(part, dtype=kind).tofile(file)
        file.flush()
        n_rows = file.tell() // (kind.itemsize * width)
        return np.memmap(file, dtype=kind, mode="r", shape=(n_rows, width))
