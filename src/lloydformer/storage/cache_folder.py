"""The user's cache folder, for files that can be made or fetched again."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the folder for one kind of file: in XDG_CACHE_HOME, or in ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lloydformer" / name
