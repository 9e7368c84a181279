"""Run work in a forked child in which one operation on files fails, as on a full disk.

Opening, creating folders and renaming fail through an audit hook of the interpreter, so every
module is reached; `os.fsync` is replaced; writing fails by a limit on the size of files.
"""

import errno
import json
import os
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVENTS = {"open": "open", "os.mkdir": "mkdir", "os.rename": "rename"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Fault:
    """The operation `kind` number `at` fails; `lasting`: all later ones that need room as well.

    kind "size": no file can grow beyond `at` bytes.
    """

    kind: str = "none"
    at: int = -1
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.at}{' and all later ones' if self.lasting else ''}"


class Faults:
    """Counts the operations below a folder, and lets one of them fail."""

    def __init__(self, folder: Path, fault: Fault) -> None:
        self.folder, self.fault = str(folder), fault
        self.counts = dict.fromkeys([*EVENTS.values(), "fsync"], 0)
        self.begun = False

    def install(self) -> None:
        sync = os.fsync

        def fsync(handle: Any) -> None:
            self.meet("fsync", None)
            sync(handle)

        os.fsync = fsync
        sys.addaudithook(self.hear)
        if self.fault.kind == "size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.fault.at, self.fault.at))

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in EVENTS or not isinstance(given[0], str | os.PathLike):
            return
        if event == "open" and not given[2] & WRITING:
            return
        path = os.path.abspath(given[0])
        if path.startswith(self.folder):
            self.meet(EVENTS[event], path)

    def meet(self, kind: str, path: str | None) -> None:
        number, self.counts[kind] = self.counts[kind], self.counts[kind] + 1
        self.begun |= (kind, number) == (self.fault.kind, self.fault.at)
        here = (kind, number) == (self.fault.kind, self.fault.at)
        if here or (self.fault.lasting and self.begun and kind != "rename"):
            raise OSError(errno.ENOSPC, "No space left on device", path)


@dataclass(frozen=True)
class Outcome:
    """How the child ended, what it printed as errors, and the operations that it counted."""

    status: int
    err: str
    counts: dict[str, int]


def run_with(work: Callable[[], int], folder: Path, fault: Fault) -> Outcome:
    """Run the work in a child whose current folder is `folder`."""
    reads, writes = zip(*(os.pipe() for _ in range(2)), strict=True)
    with warnings.catch_warnings():  # of Python 3.12: the child has only this thread
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _child(work, folder, fault, *writes)
    for pipe in writes:
        os.close(pipe)
    err, counts = map(_read, reads)
    _, status = os.waitpid(child, 0)
    return Outcome(os.waitstatus_to_exitcode(status), err, json.loads(counts or "{}"))


def _read(pipe: int) -> str:
    with os.fdopen(pipe, encoding="utf-8") as file:
        return file.read()


def _child(work: Callable[[], int], folder: Path, fault: Fault, errors: int, counted: int) -> None:
    status = 99
    try:
        os.chdir(folder)
        os.dup2(errors, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
        faults = Faults(folder, fault)
        faults.install()
        status = work()
        os.write(counted, json.dumps(faults.counts).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
