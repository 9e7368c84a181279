"""Atomic writes: a file is the old one or the new one, even if the process is killed.

A write goes to a temporary file in the folder of its target, `.NAME.` and eight digits, which is
renamed at the end. A running process holds a lock on its temporary files, so the next write of the
same target can remove those of killed processes.

Locks are advisory, and the system releases them when a process ends. On Windows and on network file
systems without locks nothing is locked: only one process at a time may write to a folder there.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

# Seconds between two attempts to get a lock. A model is written in a few milliseconds.
_POLL = 0.005


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`, which replaces `path` unless an error occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, file = _new_file(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # renamed while it is locked, or it could be taken for stale
                temporary.replace(path)
        if os.name != "posix":  # Windows renames closed files only
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    remove_stale(path)


def atomic_write_text(path: Path, text: str) -> None:
    """Write the text atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def _new_file(path: Path) -> tuple[Path, BinaryIO]:
    """Return a temporary file for `path`, with the default permissions of new files."""
    while True:
        temporary = temporary_path(path)
        file = temporary.open("xb")
        if claim(file.fileno()):
            return temporary, file
        file.close()


def temporary_path(path: Path) -> Path:
    """Return a unique hidden name in the folder of `path`."""
    return path.parent / f".{path.name}.{token_hex(4)}"


def is_temporary_name(name: str, target: str) -> bool:
    """Return True if `temporary_path` gives such names for a file or folder called `target`."""
    return re.fullmatch(rf"\.{re.escape(target)}\.[0-9a-f]{{8}}", name) is not None


def remove_stale(path: Path) -> None:
    """Remove temporary files and folders for `path` that killed processes have left.

    Does nothing in a folder that may not be listed.
    """
    from filelock import lock_descriptor

    if os.name != "posix":  # temporary files are closed, thus unlocked, before they are renamed
        return
    with suppress(OSError):
        for other in path.parent.iterdir():
            if not is_temporary_name(other.name, path.name):
                continue
            with suppress(OSError), ExitStack() as opened:
                descriptor = os.open(other, os.O_RDONLY)
                opened.callback(os.close, descriptor)
                if not lock_descriptor(descriptor, blocking=False):
                    continue  # its process is alive
                if other.is_dir() and not other.is_symlink():
                    shutil.rmtree(other)
                else:
                    other.unlink()


def claim(descriptor: int) -> bool:
    """Lock a new temporary file or folder, so that no other process removes it.

    Returns False if `remove_stale` of another process was faster: make another one.
    """
    from filelock import lock_descriptor

    try:
        if not lock_descriptor(descriptor, blocking=False):
            return False
    except OSError:  # a file system without locks, where nothing is removed
        return True
    return os.fstat(descriptor).st_nlink > 0


@contextmanager
def lock_folder(folder: Path, *, create: bool = False) -> Iterator[None]:
    """Hold the exclusive lock of a folder; waits for it.

    `create`: make the folder if it does not exist.
    """
    from filelock import lock_descriptor

    with ExitStack() as held:
        while True:
            if create:
                folder.mkdir(parents=True, exist_ok=True)
            try:
                descriptor = os.open(folder, os.O_RDONLY)
                held.callback(os.close, descriptor)
                with suppress(OSError):  # a file system without locks
                    lock_descriptor(descriptor, poll_interval=_POLL)
                # Another process may replace the folder during the wait: then wait for the new one.
                if os.path.samestat(os.fstat(descriptor), folder.stat()):
                    break
            except FileNotFoundError:
                if not create:
                    raise
            except PermissionError:  # a folder that may not be listed, or any folder on Windows
                break
            held.close()
        yield


def check_writable(path: Path) -> None:
    """Raise `ValueError` if the path cannot be written.

    Tests by writing: permissions say nothing about read-only file systems, nor for root.
    """
    folder = nearest_existing(path if path.is_dir() else path.parent)
    try:
        temporary, file = _new_file(folder / path.name)
        file.close()
        temporary.unlink()
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written to ({error.strerror}); pass another --output"
        ) from None


def check_apart(path: Path, data: str) -> None:
    """Raise `ValueError` if the output is the data, or a file in the folder of the data."""
    output, source = path.resolve(), Path(data).resolve()
    if output == source:
        raise ValueError(f"{path} is the data; pass another --output")
    if output.parent == source:
        raise ValueError(f"{path.parent} is the folder of the data; pass another --output")


def refuse_to_overwrite(path: Path, force: bool, option: str = "--output") -> None:
    """Raise `ValueError` if a file cannot be written at `path`, or exists and `force` is not set.

    Commands call it before the work, so that no result is lost after it. `option`: the option that
    names the path.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass the name of a file")
    folder = nearest_existing(path.parent)
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to; pass another {option}")
    if path.exists() and not force:
        raise ValueError(f"{path} exists; pass --force to replace it, or {option} for another")


def nearest_existing(path: Path) -> Path:
    """Return the path if it exists, else its nearest existing parent."""
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())


def cache_folder(name: str) -> Path:
    """Return the user's cache folder for one kind of file: in XDG_CACHE_HOME, or in ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lloydformer" / name
