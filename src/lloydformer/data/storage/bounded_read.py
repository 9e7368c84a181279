"""Read files whole, after a look at their kind and size: no pipe, no device, no memory bomb."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

# Bytes of the largest JSON file. As Python objects they take up to twenty times as much memory.
JSON_LIMIT = 64 << 20
# Levels of the deepest JSON file. Code that walks through it by recursion needs a bound well below
# Python's limit of 1000 frames; our own files have less than 10 levels.
_DEPTH = 100


def read_whole(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises `ValueError` for a pipe, a device or a folder and for a larger file, before reading, and
    `FileNotFoundError` if there is no such file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path}: is a pipe, a device or a folder; pass a regular file")
    # O_NONBLOCK: the file may have become a pipe since, and opening that would wait for a writer.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"{path}: holds {size:,} bytes; at most {limit:,} are read")
        data = file.read(size + 1)
    if len(data) > size:
        raise ValueError(f"{path}: grew while it was read; try again")
    return data


def read_json(path: Path) -> Any:
    """Read a JSON file; raises `ValueError` as `read_whole`, or if it is damaged or too deep."""
    return parse_json(read_whole(path, JSON_LIMIT), str(path))


def parse_json(data: bytes, where: str) -> Any:
    """Parse JSON; raises `ValueError`, which begins with `where`, if it is damaged or too deep."""
    try:
        found = json.loads(data)
        deep = _is_deep(found)
    except RecursionError:
        deep = True
    except ValueError as error:  # not JSON, or not Unicode
        raise ValueError(f"{where}: is not JSON ({error})") from None
    if deep:
        raise ValueError(f"{where}: is not JSON that can be read (more than {_DEPTH} levels)")
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        parts = [part for part in level if isinstance(part, dict | list)]
        level = [one for p in parts for one in (p.values() if isinstance(p, dict) else p)]
        if not level:
            return False
    return True


def tensor_limit() -> int:
    """Return the bytes of the largest file of tensors: half of the memory, as they are copied."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return sys.maxsize
