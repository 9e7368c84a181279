"""Torch on one thread, for jobs of many small problems."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the `with` block on one thread of torch."""
    # On small problems a second thread costs time, on a busy machine many times as much.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
