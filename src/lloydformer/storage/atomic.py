"""Atomic writes: a file is the old one or the new one, even if the process is killed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`, which replaces `path` unless an error occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / _hidden(path.name)
    file = temporary.open("xb")  # with the default permissions of new files
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _hidden(name: str) -> str:
    """A unique hidden name."""
    return f".{name}.{token_hex(4)}"


def write_whole(path: Path, text: str) -> None:
    """Write the text atomically, in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Open a temporary folder; at the end its files are moved to `folder`.

    A new folder appears with all its files at once. In an existing folder each file is replaced
    atomically, JSON files last, because they refer to the others. After an error `folder` is
    unchanged, or does not exist if it did not before.
    """
    temporary = existing(folder) / _hidden(folder.name)
    temporary.mkdir()
    try:
        yield temporary
        files = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
        for file in files:
            _sync(file)
        _move(temporary, files, folder)
    except OSError as error:
        if error.filename is None:  # a failed write does not name its file
            error.filename = str(folder)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Raise `ValueError` if the path cannot be written.

    Tests by writing: permissions say nothing about read-only file systems, nor for root.
    """
    folder = existing(path.absolute() if path.is_dir() else path.absolute().parent)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{path.name}."):
            pass
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


def _move(temporary: Path, files: list[Path], folder: Path) -> None:
    """Rename the temporary folder, or move its files into an existing folder."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary.rename(folder)
        return
    for file in sorted(files, key=lambda file: file.suffix == ".json"):
        goal = folder / file.relative_to(temporary)
        goal.parent.mkdir(parents=True, exist_ok=True)
        file.replace(goal)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
