"""Atomic writes of files: a file is the old one or the new one, even if the process is killed.

A write goes to a temporary file beside its target, `.NAME.` and eight digits, which is renamed at
the end. The temporary files of killed processes are removed by the next write of the same target.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from lloydformer.storage import locks


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`, which replaces `path` unless an error occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, file = _new_file(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # renamed while it is locked
                temporary.replace(path)
        if os.name != "posix":
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sweep_hidden(path)


def write_whole(path: Path, text: str) -> None:
    """Write the text atomically, in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


def hidden(path: Path) -> Path:
    """A unique hidden name beside `path`."""
    return path.parent / f".{path.name}.{token_hex(4)}"


def is_hidden(name: str, target: str) -> bool:
    """Whether `name` is a hidden name of a file or folder that is called `target`."""
    return re.fullmatch(rf"\.{re.escape(target)}\.[0-9a-f]{{8}}", name) is not None


def sweep_hidden(path: Path) -> None:
    """Remove the files and folders with hidden names of `path` that killed processes have left.

    Does nothing in a folder that may not be listed.
    """
    with suppress(OSError):
        for other in path.parent.iterdir():
            if is_hidden(other.name, path.name):
                locks.sweep(other, _remove)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def check_writable(path: Path) -> None:
    """Raise `ValueError` if the path cannot be written.

    Tests by writing: permissions say nothing about read-only file systems, nor for root.
    """
    folder = existing(path.absolute() if path.is_dir() else path.absolute().parent)
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
    goal, read = path.resolve(), Path(data).resolve()
    if goal == read:
        raise ValueError(f"{path} is the data; pass another --output")
    if goal.parent == read:
        raise ValueError(f"{path.parent} is the folder of the data; pass another --output")


def existing(path: Path) -> Path:
    """Return the path if it exists, else its nearest existing parent."""
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())


def _new_file(path: Path) -> tuple[Path, BinaryIO]:
    """A temporary file for `path`, with the default permissions of new files."""
    while True:
        temporary = hidden(path)
        file = temporary.open("xb")
        if locks.claim(file.fileno()):
            return temporary, file
        file.close()
