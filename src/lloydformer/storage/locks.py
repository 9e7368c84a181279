"""Advisory locks on files and folders. The system releases a lock when its process ends.

Windows and some network file systems have no such locks: there nothing is locked, and only one
process at a time may write to a folder.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path, *, shared: bool = False, create: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; waits for it. Several processes can hold a shared lock.

    The lock belongs to the folder that is at this path when the lock is given, even if another
    folder was there when the wait began. `create`: make the folder if it does not exist.
    """
    with ExitStack() as held:
        while not _locked(folder, shared, create, held):
            held.close()
        yield


def _locked(folder: Path, shared: bool, create: bool, held: ExitStack) -> bool:
    """Lock the folder that is there now. Returns False if it is another one after the wait."""
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        return True
    try:
        descriptor = held.enter_context(_opened(folder))
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        if not create:
            raise
        return False
    except PermissionError:  # a folder that may not be listed
        return True


def claim(descriptor: int) -> bool:
    """Lock a new temporary file or folder, so that nobody sweeps it.

    Returns False if a sweep was faster: make another one.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where nothing is swept
        return True
    return os.fstat(descriptor).st_nlink > 0


def sweep(path: Path, remove: Callable[[Path], None]) -> None:
    """Remove a temporary file or folder, unless its process is alive and has claimed it."""
    if fcntl is None:
        return
    with suppress(OSError), _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(path)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
