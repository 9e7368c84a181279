"""Exchange two folders in one step, where the system can."""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_CURRENT_FOLDER = -100
"""AT_FDCWD of Linux: relative paths begin in the current folder."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""


def swap(one: Path, other: Path) -> bool:
    """Exchange two paths atomically. Returns False, and does nothing, where that is impossible."""
    exchange = _exchange()
    return exchange is not None and exchange(os.fsencode(one), os.fsencode(other)) == 0


@cache
def _exchange() -> Any:
    """The function of the C library that exchanges two paths and returns 0; None without one."""
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        return lambda one, other: library.renameat2(
            _CURRENT_FOLDER, one, _CURRENT_FOLDER, other, ctypes.c_uint(_EXCHANGE)
        )
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return lambda one, other: library.renamex_np(one, other, ctypes.c_uint(_EXCHANGE))
    return None
