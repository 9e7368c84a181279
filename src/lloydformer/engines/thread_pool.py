"""A pool of threads in which torch uses one core each; other threads keep theirs."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


def single_core_pool(n_threads: int) -> ThreadPoolExecutor:
    """A pool whose threads run torch on one core each, so that results have the same bits.

    `torch.set_num_threads` would change the whole process, callbacks and other fits included. The
    limit of OpenMP belongs to the thread that sets it.
    """
    return ThreadPoolExecutor(n_threads, initializer=_use_one_core)


def _use_one_core() -> None:
    torch.get_num_threads()  # torch sets its default when a thread first asks: before our limit
    for library in _openmp_libraries():
        library.set_num_threads(1)


@cache
def _openmp_libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="openmp").lib_controllers)
