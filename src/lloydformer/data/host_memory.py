"""Host memory on Linux: is an address mapped from a file, and how much may be pinned."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESS = Path("/proc/self")
_MEMINFO = Path("/proc/meminfo")
_CGROUP_ROOT = Path("/sys/fs/cgroup")
# By the name of a controller in /proc/self/cgroup, version 2 ("0") and version 1 ("memory"): the
# folder, the files with limit and usage, and the entry of memory.stat with the file pages that were
# not used lately. The system drops those first, so they count as free.
_CGROUP_FILES = {
    "0": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def is_file_mapping(address: int) -> bool:
    """Return True if the memory at an address is mapped from a file, or if that is not known."""
    with suppress(OSError):
        for line in (_PROCESS / "maps").read_text().splitlines():
            span, _, _, _, inode, *_ = line.split()
            start, stop = (int(end, 16) for end in span.split("-"))
            if start <= address < stop:
                return inode != "0"
    return True


def pinnable_memory() -> int:
    """Return half of the bytes that machine and containers have free; 0 if that is not known.

    Pinned memory cannot be swapped out, so the other half is left to everything else.
    """
    with suppress(OSError):
        meminfo = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
        if "MemAvailable" in meminfo:
            free = 1024 * int(meminfo["MemAvailable"].split()[0])
            return max(0, min([free, *_free_in_cgroups()])) // 2
    return 0


def _free_in_cgroups() -> Iterator[int]:
    """Yield the free bytes of each control group of this process, parents included."""
    with suppress(OSError):
        for line in (_PROCESS / "cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            files = _CGROUP_FILES.get(names or number)
            if files is None:
                continue
            mount, limit, usage, droppable = files
            root = _CGROUP_ROOT / mount
            own = root / path.lstrip("/")
            # Inside a container the path may not exist: the mount itself is then the container's
            # group.
            for folder in [own, *own.parents]:
                with suppress(OSError, ValueError):  # "max": no limit
                    stat = (folder / "memory.stat").read_text().splitlines()
                    dropped = int(dict(entry.split() for entry in stat).get(droppable, 0))
                    most, used = (int((folder / name).read_text()) for name in (limit, usage))
                    yield most - used + dropped
                if folder == root:
                    break
