"""Numbers of threads, and pools in which torch uses one core for each thread."""

import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import torch
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
V = TypeVar("V")

# Bytes of addresses that a thread may take: its stack (8 MB), its heap (64 MB) and a reserve.
_ADDRESS_SPACE = 128 << 20
# Physical cores that this process may use, by its affinity and its share in a container. They are
# counted once, as this starts other programs on some systems.
_count_cores = cache(partial(cpu_count, only_physical_cores=True))


def allowed_threads() -> int:
    """Return as many threads as torch and OpenMP (`threadpoolctl`) both allow, one a core at most.

    `OMP_NUM_THREADS` may ask for more threads than there are cores. Within `one_core` these are
    the limits outside of it: engines that a fit opens have threads of their own.
    """
    limits = list(_outside.limits or _openmp_limits())
    if not os.environ.get("OMP_NUM_THREADS"):
        limits.append(int(_count_cores()))
    return min(torch_threads(), *limits)


def torch_threads() -> int:
    """Return torch's number of threads; within `one_core` the number outside of it."""
    return torch.get_num_threads() if _outside.limits is None else _outside.torch


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


def map_on_single_cores(
    function: Callable[[S], V], items: Iterable[S], device: torch.device
) -> list[V]:
    """Return the results for these items, which threads compute with torch on one core each."""
    items = list(items)
    if device.type != "cpu":  # a GPU has its own threads
        return list(map(function, items))
    with single_core_pool(min(torch_threads(), len(items))) as pool:
        return list(pool.map(function, items))


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
    gate, started = threading.Event(), 0
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


class _Outside(threading.local):
    """Limits of this thread outside of `one_core`; None where it is not in use."""

    limits: list[int] | None = None
    torch: int = 1
    process: int = 0


_outside = _Outside()


@contextmanager
def one_core() -> Iterator[None]:
    """Run torch on one core in this thread, so that it starts no threads of its own.

    OpenMP ends the process if it cannot start its threads (no memory for a stack, RLIMIT_NPROC),
    and torch asks it for threads wherever an array has more than 2^15 numbers. So every fit and
    assignment runs in it, and what takes long runs in the pools of the engines, which do with the
    threads that start. It is a decorator as well.
    """
    before, outermost, process = _openmp_limits(), _outside.limits is None, os.getpid()
    if outermost:
        _outside.limits, _outside.process = before, process
        _outside.torch = torch.get_num_threads()
    _use_one_core()
    try:
        yield
    finally:
        if os.getpid() == process:  # in a child torch stays on one core, see below
            _set_openmp_limits(before)
        if outermost:
            _outside.limits = None


@contextmanager
def callers_cores() -> Iterator[None]:
    """Undo `one_core`: for callbacks and other functions of the user, and for literal circuits.

    It does nothing elsewhere. It is a decorator as well.
    """
    outside, inside = _outside.limits, _openmp_limits()
    if outside is None or os.getpid() != _outside.process:
        yield
        return
    _outside.limits = None
    _set_openmp_limits(outside)
    try:
        yield
    finally:
        _set_openmp_limits(inside)
        _outside.limits = outside


def _use_one_core() -> None:
    torch.get_num_threads()  # torch sets its default when a thread first asks: before our limit
    _set_openmp_limits([1] * len(_openmp_functions()))


def _openmp_limits() -> list[int]:
    return [get() for get, _ in _openmp_functions()]


def _set_openmp_limits(limits: list[int]) -> None:
    for (_, set_limit), limit in zip(_openmp_functions(), limits, strict=True):
        set_limit(limit)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # OpenMP keeps the threads of its last parallel loop. A fork does not copy them, and the child's
    # first parallel loop would wait for them for ever: torch runs on one thread there.
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


@cache
def _openmp_functions() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """Return the functions by which each OpenMP library reads and sets the limit of a thread."""
    # Those of the libraries themselves: the methods of threadpoolctl take ten times as long, 20 µs
    # in each fit.
    found = ThreadpoolController().select(user_api="openmp").lib_controllers
    libraries = [library.dynlib for library in found]
    return [(one.omp_get_max_threads, one.omp_set_num_threads) for one in libraries]
