"""How much memory of the host may be kept from being used by others."""

import re
from contextlib import suppress
from pathlib import Path

_KNOWN = Path("/proc/meminfo")
_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Limits of a container; the second one is of older systems."""


def lockable_memory() -> int:
    """Half of the bytes that the machine has left, or the container; 0 if that is not known."""
    left = []
    with suppress(OSError):
        found = re.search(r"MemAvailable:\s*(\d+) kB", _KNOWN.read_text())
        left = [1024 * int(found[1])] if found else []
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # "max": no limit
            left.append(int(path.read_text()))
    return min(left, default=0) // 2
