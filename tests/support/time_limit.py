"""A time limit for work that would wait or run for ever."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def time_limit(seconds: int, words: str) -> Iterator[None]:
    """Raise `TimeoutError` with these words after so many seconds."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(words)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
