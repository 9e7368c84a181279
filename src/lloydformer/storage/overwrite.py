"""Refuse to overwrite files without permission."""

import os
from pathlib import Path


def refuse_to_overwrite(path: Path, force: bool, option: str = "--output") -> None:
    """Raise ValueError if a file cannot be written at `path`, or exists and `force` is not set.

    Commands call it before the work, so that no result is lost after it. option: the option that
    names the path.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass the name of a file")
    folder = next(p for p in path.absolute().parents if p.exists())
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to; pass another {option}")
    if path.exists() and not force:
        raise ValueError(f"{path} exists; pass --force to replace it, or {option} for another")
