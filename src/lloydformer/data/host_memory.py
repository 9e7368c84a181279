"""Memory of the host: is it a file that is mapped, and how much of it may be page-locked?"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESS = Path("/proc/self")
_MEMINFO = Path("/proc/meminfo")
_GROUPS = Path("/sys/fs/cgroup")
_FILES = {
    "0": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Folder, limit, use, and pages of files that can be dropped: of control groups, new and old."""


def in_file(address: int) -> bool:
    """Is the memory at an address mapped from a file? True where that is not known."""
    with suppress(OSError):
        for line in (_PROCESS / "maps").read_text().splitlines():
            span, _, _, _, inode, *_ = line.split()
            start, stop = (int(end, 16) for end in span.split("-"))
            if start <= address < stop:
                return inode != "0"
    return True


def lockable_memory() -> int:
    """Half of the bytes that the machine and its containers have left; 0 if that is not known."""
    with suppress(OSError):
        known = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
        if "MemAvailable" in known:
            left = 1024 * int(known["MemAvailable"].split()[0])
            return max(0, min([left, *_left_in_groups()])) // 2
    return 0


def _left_in_groups() -> Iterator[int]:
    """What each control group of this process has left."""
    with suppress(OSError):
        for line in (_PROCESS / "cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            kind = _FILES.get(names or number)
            if kind is None:
                continue
            root = _GROUPS / kind[0]
            own = root / path.lstrip("/")
            for folder in [own, *own.parents]:
                with suppress(OSError, ValueError):  # "max": no limit
                    yield _left(folder, *kind[1:])
                if folder == root:
                    break


def _left(folder: Path, limit: str, used: str, dropped: str) -> int:
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    most, now = (int((folder / name).read_text()) for name in (limit, used))
    return most - now + int(stat.get(dropped, 0))
