"""Locks that a forked child must not inherit locked: of imports, and of cached properties.

A fork copies one thread, and with it every lock as it is. A lock that another thread held at that
moment has no owner in the child, which waits for it forever.
"""

# These two lock before a fork as well. What is registered first runs last before a fork, so they
# come first: while this thread waited for imports, other threads would wait for their locks.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import sys
import time
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers know what a cached property is
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801
        """`functools.cached_property` without its lock, as in Python 3.12.

        The lock of Python 3.11 belongs to the class: a thread that finds the ends of its own data
        would keep all others, and a forked child forever, from finding those of theirs. Two
        threads may compute the same value; that of the last one stays.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            # Python looks into the instance first, so this runs only until the value is there.
            if instance is None:
                return self
            # Written in any case: computing may have cached the value of `super()` by this name.
            value = vars(instance)[self._name] = self._compute(instance)
            return value


# Packages whose modules a fit imports when it first needs them, scikit-learn also inside of `fit`.
_IMPORTED = {"importlib", "joblib", "lloydformer", "numpy", "scipy", "sklearn", "torch"}
# The longest that a fork waits, in seconds: torch and scikit-learn take a few to import, more where
# other programs keep the processor busy. There is a limit, as an
# import may wait for the thread that forks.
_LONGEST_WAIT = 60.0


def _wait_for_imports() -> None:
    """Return when no other thread is importing what a fit needs.

    Each module has a lock while it is imported: a child that is forked meanwhile could not import
    it, or any other that needs it.
    """
    end = time.monotonic() + _LONGEST_WAIT
    while _others_are_importing() and time.monotonic() < end:
        time.sleep(0.05)  # a shorter one would keep the importing thread from its work


def _others_are_importing() -> bool:
    # Imports of other packages are left alone: a program may run for days inside of one.
    for thread, innermost in sys._current_frames().items():
        frame = None if thread == get_ident() else innermost
        while frame is not None:
            code = frame.f_code
            if (code.co_filename, code.co_name) == _IMPORT:
                package = frame.f_locals.get("name", "").partition(".")[0]
                if package in _IMPORTED:
                    return True
            frame = frame.f_back
    return False


# The function of Python in which a thread is while it imports a module, or waits for its lock.
_IMPORT = ("<frozen importlib._bootstrap>", "_find_and_load")

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_wait_for_imports)
