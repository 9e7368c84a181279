"""Atomic writes of folders: all files of a run together, even if the process is killed.

The files are written to a temporary folder, which takes the place of the old one in one step. Other
files that are in the old folder get a second name (a hard link) in the new one before that step.
Where one step is impossible, files are replaced one by one: if the folder has other folders in it,
is the current one or a mount point, or the system cannot exchange folders. Then the file that is
named last is removed first and written last, so that a folder without it is known to be incomplete.
"""

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lloydformer.data.storage.atomic_files import (
    claim,
    is_temporary_name,
    lock_folder,
    nearest_existing,
    remove_stale,
    temporary_path,
)

# AT_FDCWD of Linux: relative paths begin in the current folder.
_CURRENT_FOLDER = -100
# RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS have the same value.
_EXCHANGE = 2


@contextmanager
def atomic_folder(folder: Path, patterns: Sequence[str], *, force: bool = False) -> Iterator[Path]:
    """Open a temporary folder; at the end its files are in `folder`.

    All of them or none, where folders can be exchanged.

    Parameters
    ----------
    folder : Path
        The folder to write. After an error in the block it is unchanged, or does not exist if it
        did not before. An error while files are replaced one by one leaves it without the last
        file.
    patterns : sequence of str
        The files that belong to a run, as "labels.csv" or "model/*.json"; the file that completes a
        run is the last one. Other files in the folder stay.
    force : bool
        Replace the files of an earlier run, and remove those that are not written again.

    Raises
    ------
    ValueError
        If `folder` holds files of a run and `force` is False.
    """
    given, folder = folder, folder.resolve()
    parent = nearest_existing(folder.parent)
    # A folder can be exchanged only with one on the same file system, in a parent that may be
    # written to. Otherwise the temporary folder is inside, and files are replaced one by one.
    inside = folder.exists() and not (
        os.access(parent, os.W_OK) and parent.stat().st_dev == folder.stat().st_dev
    )
    neighbour = (folder if inside else parent) / folder.name
    while True:
        temporary = temporary_path(neighbour)
        temporary.mkdir()
        descriptor = None
        if os.name != "posix":  # Windows opens no folders, and nothing is locked there
            break
        with suppress(FileNotFoundError):  # removed as stale before it was claimed
            descriptor = os.open(temporary, os.O_RDONLY)  # holds the lock until the end
            if claim(descriptor):
                break
            os.close(descriptor)
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                with path.open("r+b") as file:  # Windows refuses `fsync` of a file to read
                    os.fsync(file.fileno())
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder.parent):
            _replace_folder(temporary, folder, patterns, force)
            # In the lock: after an exchange `temporary` is the old folder, which nobody has locked,
            # and another process may still be moving files out of its own.
            for place in {neighbour, folder, folder / folder.name}:
                remove_stale(place)
    except OSError as error:
        if error.filename is None:  # a failed write does not name its file
            error.filename = str(given)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _replace_folder(temporary: Path, folder: Path, patterns: Sequence[str], force: bool) -> None:
    """Make the temporary folder, or its files, the content of `folder`."""
    if not folder.exists():
        with suppress(OSError):  # another process was faster
            temporary.rename(folder)
            return
    present = _matching_files(folder, patterns)
    if present and not force:
        raise ValueError(
            f"{min(present)} exists; pass --force to replace it, or --output for another folder"
        )
    if _exchange_folders(temporary, folder, patterns):
        return
    # One by one: JSON files after what they refer to, and the file that completes a run last.
    files = [path.relative_to(temporary) for path in _matching_files(temporary, patterns)]
    last = Path(patterns[-1])
    (folder / last).unlink(missing_ok=True)
    for file in sorted(files, key=lambda file: (file == last, file.suffix == ".json")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (temporary / file).replace(folder / file)
    for old in _matching_files(folder, patterns) - {folder / file for file in files}:
        old.unlink(missing_ok=True)


def _exchange_folders(temporary: Path, folder: Path, patterns: Sequence[str]) -> bool:
    """Exchange the folders in one step; return False where that is impossible."""
    if temporary.parent != folder.parent:
        return False
    try:
        if Path.cwd().is_relative_to(folder):
            return False
        for other in _other_files(folder, patterns, folder.name):
            os.link(folder / other, temporary / other, follow_symlinks=False)
        shutil.copymode(folder, temporary)
    except OSError:  # other folders, no links on this file system, no current folder
        return False
    if not exchange(temporary, folder):
        return False
    for other in _other_files(temporary, patterns, folder.name):
        if not os.path.lexists(folder / other):  # it came after the links were made
            (temporary / other).rename(folder / other)
    return True


def _matching_files(folder: Path, patterns: Sequence[str]) -> set[Path]:
    """Return the files of a run."""
    return {path for pattern in patterns for path in folder.glob(pattern)}


def _other_files(folder: Path, patterns: Sequence[str], name: str) -> list[Path]:
    """Return what else is in the folder and in folders of a run, as relative paths.

    Temporary folders for `name` do not count.
    """
    places = {Path(pattern).parent for pattern in patterns}
    return [
        place / path.name
        for place in places
        if (folder / place).is_dir()
        for path in (folder / place).iterdir()
        if place / path.name not in places
        and not is_temporary_name(path.name, name)
        and not any(fnmatchcase((place / path.name).as_posix(), pattern) for pattern in patterns)
    ]


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths atomically. Returns False, and does nothing, where that is impossible."""
    # Called in the C library, as Python has no such function: `os.rename` replaces its target, and
    # fails for folders that are not empty.
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    first, second, flag = os.fsencode(one), os.fsencode(other), ctypes.c_uint(_EXCHANGE)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        return library.renameat2(_CURRENT_FOLDER, first, _CURRENT_FOLDER, second, flag) == 0
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return library.renamex_np(first, second, flag) == 0
    return False
