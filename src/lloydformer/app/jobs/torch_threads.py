"""The number of threads that torch uses in a job."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Run the `with` block with this number of threads of torch.

    Jobs of many small problems use one: a second one costs time, on a busy machine many times as
    much.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
