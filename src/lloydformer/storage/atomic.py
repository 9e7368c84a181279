"""Files that are the old one or the new one, whatever happens while they are written."""

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
    """A file beside `path`, renamed to it when all is written; an error leaves what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.parent / _hidden(path.name)
    file = beside.open("xb")  # with the permissions that new files have for this user
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _hidden(name: str) -> str:
    """A name that no file has."""
    return f".{name}.{token_hex(4)}"


def write_whole(path: Path, text: str) -> None:
    """The text, in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """A folder to write files in, which go to `folder` when all of them are written.

    A new folder appears with all its files at once. In one that exists, each file is replaced as
    a whole, JSON after what it speaks of. An error leaves what was there, and no folder where
    there was none.
    """
    beside = existing(folder) / _hidden(folder.name)
    beside.mkdir()
    try:
        yield beside
        files = [path for path in sorted(beside.rglob("*")) if path.is_file()]
        for file in files:
            _synced(file)
        _moved(beside, files, folder)
    except OSError as error:
        if error.filename is None:  # a write that failed does not know its file
            error.filename = str(folder)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Tried, not asked: whoever may do everything still cannot write everywhere."""
    folder = existing(path.absolute() if path.is_dir() else path.absolute().parent)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written to ({error.strerror}); pass another --output"
        ) from None


def check_apart(path: Path, data: str) -> None:
    """What is read must not be written over, and a folder that is read must not get more files."""
    goal, read = path.resolve(), Path(data).resolve()
    if goal == read:
        raise ValueError(f"{path} is the data; pass another --output")
    if goal.parent == read:
        raise ValueError(f"{path.parent} is the folder of the data; pass another --output")


def existing(path: Path) -> Path:
    """The path itself if it is there, else the nearest folder above it that is."""
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())


def _moved(beside: Path, files: list[Path], folder: Path) -> None:
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside.rename(folder)
        return
    for file in sorted(files, key=lambda file: file.suffix == ".json"):
        goal = folder / file.relative_to(beside)
        goal.parent.mkdir(parents=True, exist_ok=True)
        file.replace(goal)


def _synced(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
