"""Run a function in a forked child: the same bits as in this process, an error, or no answer."""

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[], list[np.ndarray]]
SECONDS = 20.0
"""A child that has not answered by then waits for threads that it does not have."""


def compared(case: Case) -> str:
    """Compare the result of this process with that of a child that it forks afterwards."""
    here, there = case(), in_child(case)
    return there if isinstance(there, str) else difference(here, there)


def difference(here: list[np.ndarray], there: list[np.ndarray]) -> str:
    same = len(here) == len(there) and all(map(np.array_equal, here, there))
    return "same" if same else "different"


def in_child(case: Case) -> Any:
    """What the case returns in a forked child, the words of its error, or "no answer"."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer: Any = case()
        except BaseException as error:
            answer = repr(error)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    try:
        return received(read, time.monotonic() + SECONDS)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def received(pipe: int, deadline: float) -> Any:
    found = b""
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        while select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = stream.read(1 << 16)
            if not part:
                return pickle.loads(found) if found else "no answer"
            found += part
    return "no answer"
