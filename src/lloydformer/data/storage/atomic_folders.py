"""Atomic writes of folders: all files of a run together, even if the process is killed.

The files are written to a temporary folder, which takes the place of the old one in one step. Other
files that are in the old folder get a second name (a hard link) in the new one before that step.
Where one step is impossible, files are replaced one by one: if the folder has other folders in it,
is the current one or a mount point, or the system cannot exchange folders. Then the file that is
named last is removed first and written last, so that a folder without it is known to be incomplete.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from lloydformer.storage import locks
from lloydformer.storage.atomic import existing, hidden, is_hidden, sweep_hidden
from lloydformer.storage.swap import swap


@contextmanager
def filling(folder: Path, patterns: Sequence[str], *, force: bool = False) -> Iterator[Path]:
    """Open a temporary folder; at the end its files are in `folder`, all or none.

    `patterns`: the files that belong to a run, as "labels.csv" or "model/*.json"; the file that
    completes a run is the last one. With `force` those of an earlier run are replaced, or removed
    if they are not written again. Other files stay. After an error `folder` is unchanged, or does
    not exist if it did not before.

    Raises `ValueError` if `folder` holds files of a run and `force` is False.
    """
    named, folder = folder, folder.resolve()
    beside = _beside(folder)
    temporary, descriptor = _new_folder(beside)
    try:
        yield temporary
        _sync(temporary)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locks.locked(folder.parent):
            _place(temporary, folder, patterns, force)
    except OSError as error:
        if error.filename is None:  # a failed write does not name its file
            error.filename = str(named)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)
    for place in {beside, folder, folder / folder.name}:
        sweep_hidden(place)


def _beside(folder: Path) -> Path:
    """The path whose hidden names are used for temporary folders.

    It is beside `folder` (or a parent, if that does not exist yet). It is inside `folder` if its
    parent cannot be written to or is on another file system.
    """
    parent = existing(folder.parent)
    inside = folder.exists() and not (
        os.access(parent, os.W_OK) and parent.stat().st_dev == folder.stat().st_dev
    )
    return (folder if inside else parent) / folder.name


def _new_folder(path: Path) -> tuple[Path, int]:
    """A temporary folder for `path`, and the descriptor that holds its lock."""
    while True:
        temporary = hidden(path)
        temporary.mkdir()
        with suppress(FileNotFoundError):  # swept before it was claimed
            descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
            if locks.claim(descriptor):
                return temporary, descriptor
            os.close(descriptor)


def _place(temporary: Path, folder: Path, patterns: Sequence[str], force: bool) -> None:
    """Make the temporary folder, or its files, the content of `folder`."""
    if not folder.exists():
        with suppress(OSError):  # another process was faster
            temporary.rename(folder)
            return
    there = _matching(folder, patterns)
    if there and not force:
        raise ValueError(
            f"{min(there)} exists; pass --force to replace it, or --output for another folder"
        )
    if not _exchange(temporary, folder, patterns):
        _replace_each(temporary, folder, patterns)


def _exchange(temporary: Path, folder: Path, patterns: Sequence[str]) -> bool:
    """Exchange the folders in one step; returns False where that is impossible."""
    if temporary.parent != folder.parent:
        return False
    try:
        if Path.cwd().is_relative_to(folder):
            return False
        for other in _others(folder, patterns, folder.name):
            os.link(folder / other, temporary / other, follow_symlinks=False)
        shutil.copymode(folder, temporary)
    except OSError:  # other folders, no links on this file system, no current folder
        return False
    if not swap(temporary, folder):
        return False
    for other in _others(temporary, patterns, folder.name):
        if not os.path.lexists(folder / other):  # it came after the links were made
            (temporary / other).rename(folder / other)
    return True


def _replace_each(temporary: Path, folder: Path, patterns: Sequence[str]) -> None:
    """Replace the files one by one: the last one last, JSON files after what they refer to."""
    files = [path.relative_to(temporary) for path in _matching(temporary, patterns)]
    last = Path(patterns[-1])
    (folder / last).unlink(missing_ok=True)
    for file in sorted(files, key=lambda file: (file == last, file.suffix == ".json")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (temporary / file).replace(folder / file)
    for old in _matching(folder, patterns) - {folder / file for file in files}:
        old.unlink(missing_ok=True)


def _matching(folder: Path, patterns: Sequence[str]) -> set[Path]:
    """The files of a run."""
    return {path for pattern in patterns for path in folder.glob(pattern)}


def _others(folder: Path, patterns: Sequence[str], name: str) -> list[Path]:
    """What else is in the folder and in folders of a run, as relative paths.

    Temporary folders for `name` do not count.
    """
    places = {Path(pattern).parent for pattern in patterns}
    found = [place / path.name for place in places if (folder / place).is_dir()
             for path in (folder / place).iterdir()]  # fmt: skip
    return [
        path
        for path in found
        if path not in places
        and not is_hidden(path.name, name)
        and not any(fnmatchcase(path.as_posix(), pattern) for pattern in patterns)
    ]


def _sync(folder: Path) -> None:
    """Write all files of the folder to the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
