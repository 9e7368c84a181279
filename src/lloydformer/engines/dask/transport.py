"""Requests as tasks of a Dask cluster: one for each worker that has partitions.

`DaskTransport` is the side of the client, `handle_request` that of a worker.
"""

import pickle
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from threading import Lock
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from lloydformer.data.storage.pickles import dump_data
from lloydformer.engines.partitioned.partitions import (
    OpenPartition,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
    Response,
)
from lloydformer.engines.partitioned.requests import Request

# Seconds that one request may take: the client must not wait for ever for a task that was lost.
LIMIT = 3600.0
# Seconds to wait for a worker, if there is none: about as long as a batch queue starts one.
WITHOUT_WORKERS = 60.0
# Seconds between two looks at the state of the cluster.
_POLL = 2.0


class ClusterError(RuntimeError):
    """The cluster cannot do the work: no workers, workers that keep dying, lost data.

    Attributes
    ----------
    problem : str
        What happened, and what to do.
    argument : str
        The argument of `fit` that the problem is about, which callers may know by another name, as
        that of a file; empty if there is none.
    """

    def __init__(self, problem: str, argument: str = "") -> None:
        super().__init__(f"{argument}: {problem}" if argument else problem)
        self.problem, self.argument = problem, argument


class Waiting:
    """Waits for futures of a client, never without a limit.

    Parameters
    ----------
    client : distributed.Client
        Whose futures they are.
    meant_for : collection of str
        The workers that the tasks were meant for. If all of them are gone, that is an error: Dask
        would not give the tasks to workers that come later.
    argument : str
        The argument of `fit` that the tasks work on, for errors.
    """

    def __init__(self, client: Any, meant_for: Collection[str] = (), argument: str = "") -> None:
        self.client, self.meant_for, self.argument = client, frozenset(meant_for), argument

    def results(self, futures: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """Return the results of futures; errors name what could not be computed."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        with self._cancel_on_error(futures):
            self._wait(futures)
            if all(future.status == "finished" for future in futures):
                # All in one exchange, unless one is lost meanwhile: then one by one, for its error.
                with suppress(KilledWorker, CancelledError):
                    gather = self.client._gather  # as client.gather, which has no time limit
                    return list(self.client.sync(gather, list(futures), callback_timeout=LIMIT))
            return [self._result(*each) for each in zip(futures, names, strict=True)]

    def done(self, futures: Sequence[Any], names: Sequence[str]) -> None:
        """Wait until futures are computed; their results stay on the workers."""
        with self._cancel_on_error(futures):
            self._wait(futures)
            for future, name in zip(futures, names, strict=True):
                if future.status != "finished":
                    self._result(future, name)

    @contextmanager
    def _cancel_on_error(self, futures: Sequence[Any]) -> Iterator[None]:
        """Leave no task behind after an error, if the cluster is still there."""
        try:
            yield
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            raise

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait until futures are done, or one was cancelled, which its result tells."""
        from distributed import CancelledError, wait

        began = last_seen = time.monotonic()
        while True:
            # A poll, as Dask tells no client that all workers are gone: its futures stay pending.
            try:
                wait(list(futures), timeout=_POLL)
                return
            except CancelledError:
                return
            except TimeoutError:
                now = time.monotonic()
            if self.client.status != "running":
                raise ClusterError(f"client: it is {self.client.status}; open a new one")
            threads = self.client.nthreads()
            if self.meant_for and not self.meant_for & threads.keys():
                raise ClusterError(
                    "client: all workers died while they computed X; see why in their logs "
                    "(too little memory?)"
                )
            last_seen = now if threads else last_seen
            if now - last_seen > WITHOUT_WORKERS:
                raise ClusterError(
                    f"client: there has been no worker for {WITHOUT_WORKERS:.0f} seconds; "
                    "start workers and fit again"
                )
            if now - began > LIMIT:
                raise ClusterError(
                    f"client: no answer after {LIMIT:.0f} seconds; look at the dashboard, "
                    f"{self.client.dashboard_link}"
                )

    def _result(self, future: Any, name: str) -> Any:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        try:
            return future.result(timeout=LIMIT)
        except KilledWorker as error:
            raise ClusterError(
                f"{name}: workers died again and again while they worked on it (too little "
                f"memory?): {error}",
                self.argument,
            ) from None
        except CancelledError as error:
            raise ClusterError(
                f"{name}: it was lost with its worker and cannot be computed again ({error}); pass "
                "a collection that can recompute its data, not scattered ones",
                self.argument,
            ) from None


def describe_rows(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of rows [start, stop) in words, those that touch as one; the first three.

    >>> describe_rows([(0, 10), (10, 30), (40, 50)])
    'rows 0 to 29, 40 to 49'
    """
    joined = list[tuple[int, int]]()
    for start, stop in ranges:
        before = joined.pop() if joined and joined[-1][1] == start else (start, start)
        joined.append((before[0], stop))
    more = f" and {len(joined) - 3} more ranges" if len(joined) > 3 else ""
    return f"rows {', '.join(f'{start} to {stop - 1}' for start, stop in joined[:3])}{more}"


class DaskTransport:
    """Partitions as futures on the workers of a client.

    Parameters
    ----------
    client : distributed.Client
        The client.
    spec : PartitionSpec
        How workers open partitions.
    futures : sequence of distributed.Future
        The partitions.
    rows : list of (int, int)
        The rows [start, stop) of each partition.
    """

    def __init__(
        self, client: Any, spec: PartitionSpec, futures: Sequence[Any], rows: list[tuple[int, int]]
    ) -> None:
        self.client, self.spec = client, spec
        self._futures, self._rows, self._session = list(futures), rows, uuid4().hex
        self._waiting = Waiting(client, argument="X")
        has = client.who_has(self._futures)
        self._workers = [(has.get(future.key) or [None])[0] for future in self._futures]

    def fork(self) -> "DaskTransport":
        other = copy(self)
        other._session, other._workers = uuid4().hex, list(self._workers)
        return other

    def send(self, request: Request) -> list[Response]:
        groups = dict[Any, list[int]]()
        for number, worker in enumerate(self._workers):
            if request.is_for(number):
                groups.setdefault(worker, []).append(number)
        # Once for all workers. Without `only`, as each gets the partitions that it is for.
        message = dump_data((self.spec, replace(request, only=None)))
        tasks, names = [], []
        for worker, numbers in groups.items():
            rows = [self._rows[number] for number in numbers]
            names.append(describe_rows(rows))
            # A task for the worker that has these partitions; another one takes it if it is gone.
            task = self.client.submit(
                handle_request,
                self._session,
                message,
                sum(stop - start for start, stop in rows),
                numbers,
                [self._futures[number] for number in numbers],
                key=f"lloydformer-{type(request).__name__.lower()}-{uuid4().hex}",
                pure=False,
                workers=None if worker is None else [worker],
                allow_other_workers=worker is not None,
            )
            tasks.append(task)
        results = self._waiting.results(tasks, names)
        # Where partitions are now: the next request goes to the workers that have their state.
        for (address, _), numbers in zip(results, groups.values(), strict=True):
            for number in numbers:
                self._workers[number] = address
        return [pickle.loads(response) for _, response in results]


# On a worker: the open partitions of each session. The state of the points lives beside the rows
# and ends with them: it is found by the object that holds the rows, which Dask keeps while it is
# wanted.
_OPEN: "WeakKeyDictionary[PartitionRows, dict[str, OpenPartition]]" = WeakKeyDictionary()
_LOCK = Lock()


def handle_request(
    session: str,
    message: bytes,
    n_rows: int,
    numbers: Sequence[int],
    partitions: Sequence[PartitionRows],
) -> tuple[str, bytes]:
    """Return the address of this worker, and its response about some partitions that it has.

    Spec, request and response are bytes: Dask would need milliseconds for the few tensors in them
    (`data/storage/pickles.py`).
    """
    from distributed import get_worker

    worker, (spec, request) = get_worker(), pickle.loads(message)
    store = PartitionStore(spec, worker.state.nthreads, n_rows)
    for number, rows in zip(numbers, partitions, strict=True):
        with _LOCK:
            opened = _OPEN.setdefault(rows, {})
            if session not in opened:
                opened[session] = store.open(rows)
            store.partitions[number] = opened[session]
    return worker.address, dump_data(store.handle(request))
