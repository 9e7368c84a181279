"""Numbers of threads, and pools in which torch uses one core for each thread."""

import mmap
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Event
from typing import Any

import torch
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

# Bytes of addresses that a thread may take: its stack (8 MB), its heap (64 MB) and a reserve.
_ADDRESS_SPACE = 128 << 20
# Physical cores that this process may use, by its affinity and its share in a container. They are
# counted once, as this starts other programs on some systems.
_count_cores = cache(partial(cpu_count, only_physical_cores=True))


def allowed_threads() -> int:
    """Return as many threads as torch and OpenMP (`threadpoolctl`) both allow, one a core at most.

    `OMP_NUM_THREADS` may ask for more threads than there are cores.
    """
    limits = [library.get_num_threads() for library in _openmp_libraries()]
    if not os.environ.get("OMP_NUM_THREADS"):
        limits.append(int(_count_cores()))
    return min(torch.get_num_threads(), *limits)


def single_core_pool(n_threads: int) -> Executor:
    """Return a pool whose threads run torch on one core each, so that results keep their bits.

    `torch.set_num_threads` would change the whole process, callbacks and other fits included. The
    limit of OpenMP belongs to the thread that sets it. The pool has fewer threads if the system
    does not start that many. Work runs in the caller's thread if it starts none, or if `n_threads`
    is 1.
    """
    n_threads = startable(n_threads)
    while n_threads > 1:
        pool = ThreadPoolExecutor(n_threads, initializer=_use_one_core)
        started = _start(pool, n_threads)
        if started == n_threads:
            return pool
        pool.shutdown()
        n_threads = started
    return _CallersThread()


def startable(n_threads: int) -> int:
    """Return as many threads as there is address space for (RLIMIT_AS), at least one.

    A thread that gets no memory for its own variables would end the process.
    """
    while n_threads > 1 and hasattr(mmap, "MAP_ANONYMOUS"):  # Windows has no such limit
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            mmap.mmap(-1, n_threads * _ADDRESS_SPACE, flags=flags, prot=0).close()
            break
        except OSError:
            n_threads -= 1
    return n_threads


def _start(pool: ThreadPoolExecutor, n_threads: int) -> int:
    """Start the threads of a pool; returns how many of them the system has started."""
    gate, started = Event(), 0
    try:
        for _ in range(n_threads):  # each of them waits, so that the next one is started
            pool.submit(gate.wait)
            started += 1
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
    finally:
        gate.set()
    return started


class _CallersThread(Executor):
    """Runs what is submitted at once, in the thread that submits it, with torch on one core."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            with one_core():
                future.set_result(work(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def one_core() -> Iterator[None]:
    """Run torch on one core in this thread, so that it starts no threads of its own.

    OpenMP ends the process if it cannot start its threads. Use it around operations on n numbers in
    the caller's thread, also as a decorator.
    """
    before = [(library, library.get_num_threads()) for library in _openmp_libraries()]
    _use_one_core()
    try:
        yield
    finally:
        for library, n_threads in before:
            library.set_num_threads(n_threads)


def _use_one_core() -> None:
    torch.get_num_threads()  # torch sets its default when a thread first asks: before our limit
    for library in _openmp_libraries():
        library.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # OpenMP keeps the threads of its last parallel loop. A fork does not copy them, and the child's
    # first parallel loop would wait for them for ever: torch runs on one thread there.
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


@cache
def _openmp_libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="openmp").lib_controllers)
