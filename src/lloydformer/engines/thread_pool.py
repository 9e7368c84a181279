"""How many threads to use, and a pool in which torch uses one core for each of them."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from joblib import cpu_count
from threadpoolctl import ThreadpoolController


def allowed_threads() -> int:
    """As many threads as torch and OpenMP (`threadpoolctl`) both allow, at most one for each core.

    `OMP_NUM_THREADS` may ask for more threads than there are cores.
    """
    limits = [library.get_num_threads() for library in _openmp_libraries()]
    if not os.environ.get("OMP_NUM_THREADS"):
        limits.append(_cores())
    return min(torch.get_num_threads(), *limits)


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


def _leave_the_threads_of_the_parent() -> None:
    """Run torch on one thread in a forked child.

    OpenMP keeps the threads of its last parallel loop. A fork does not copy them, and the child's
    first parallel loop would wait for them for ever.
    """
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_leave_the_threads_of_the_parent)


@cache
def _openmp_libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="openmp").lib_controllers)


@cache
def _cores() -> int:
    """Physical cores that this process may use, by its affinity and its share in a container."""
    return int(cpu_count(only_physical_cores=True))
