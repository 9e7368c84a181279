"""Questions as tasks of a Dask cluster: one for each worker that has parts."""

import pickle
import time
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from uuid import uuid4

from lloydformer.engines.dask.worker import answered
from lloydformer.engines.parts.holder import PartsAnswer
from lloydformer.engines.parts.opening import Opening
from lloydformer.engines.parts.questions import PartsQuestion
from lloydformer.storage.pickles import pickled

LIMIT = 3600.0
"""Seconds that one question may take."""
WITHOUT_WORKERS = 60.0
"""Seconds to wait for a worker, if there is none."""
_LOOK = 2.0
"""Seconds after which one looks whether the cluster is still there."""


class ClusterError(RuntimeError):
    """The cluster cannot do the work: no workers, workers that keep dying, lost data."""


class Waiting:
    """Waits for futures of a client, never without a limit.

    Parameters
    ----------
    client : distributed.Client
        Whose futures they are.
    meant_for : collection of str
        The workers that the tasks were meant for. If all of them are gone, that is an error: Dask
        would not give the tasks to workers that come later.
    """

    def __init__(self, client: Any, meant_for: Collection[str] = ()) -> None:
        self.client, self.meant_for = client, frozenset(meant_for)

    def results(self, futures: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """The results of futures; errors name what could not be computed. None is left behind."""
        try:
            self._wait(futures)
            if all(future.status == "finished" for future in futures):
                found = self._gathered(futures)
                if found is not None:
                    return found
            return [self._result(*each) for each in zip(futures, names, strict=True)]
        except BaseException:
            self._give_up(futures)
            raise

    def done(self, futures: Sequence[Any], names: Sequence[str]) -> None:
        """Wait until futures are computed; their results stay on the workers."""
        try:
            self._wait(futures)
            for future, name in zip(futures, names, strict=True):
                if future.status != "finished":
                    self._result(future, name)
        except BaseException:
            self._give_up(futures)
            raise

    def _give_up(self, futures: Sequence[Any]) -> None:
        """Leave no task behind, if the cluster is still there."""
        if self.client.status == "running":
            self.client.cancel(list(futures), force=True)

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait until futures are done, or one was cancelled, which its result tells."""
        from distributed import CancelledError, wait

        began = alone = time.monotonic()
        while True:
            try:
                wait(list(futures), timeout=_LOOK)
                return
            except CancelledError:
                return
            except TimeoutError:
                now = time.monotonic()
                if self.client.status != "running":
                    raise ClusterError(
                        f"client: it is {self.client.status}; open a new one"
                    ) from None
                threads = self.client.nthreads()
                if self.meant_for and not self.meant_for & threads.keys():
                    raise ClusterError(
                        "client: all workers died while they computed X; see why in their logs "
                        "(too little memory?)"
                    ) from None
                alone = now if threads else alone
                if now - alone > WITHOUT_WORKERS:
                    raise ClusterError(
                        f"client: there has been no worker for {WITHOUT_WORKERS:.0f} seconds; "
                        "start workers and fit again"
                    ) from None
                if now - began > LIMIT:
                    raise ClusterError(
                        f"client: no answer after {LIMIT:.0f} seconds; look at the dashboard, "
                        f"{self.client.dashboard_link}"
                    ) from None

    def _gathered(self, futures: Sequence[Any]) -> list[Any] | None:
        """The results of all futures in one exchange; None if one was lost meanwhile."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        try:
            gather = self.client._gather  # as client.gather, which has no time limit
            return list(self.client.sync(gather, list(futures), callback_timeout=LIMIT))
        except (KilledWorker, CancelledError):
            return None

    def _result(self, future: Any, name: str) -> Any:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        try:
            return future.result(timeout=LIMIT)
        except KilledWorker as error:
            raise ClusterError(
                f"{name}: workers died again and again while they worked on it (too little "
                f"memory?): {error}"
            ) from None
        except CancelledError as error:
            raise ClusterError(
                f"{name}: it was lost with its worker and cannot be computed again ({error}); pass "
                "a collection that knows how to make its data, not scattered ones"
            ) from None


def rows_in_words(ranges: Sequence[tuple[int, int]]) -> str:
    """Ranges of rows [start, stop) in their order, those that touch as one; the first three.

    >>> rows_in_words([(0, 10), (10, 30), (40, 50)])
    'rows 0 to 29, 40 to 49'
    """
    joined = list[tuple[int, int]]()
    for start, stop in ranges:
        before = joined.pop() if joined and joined[-1][1] == start else (start, start)
        joined.append((before[0], stop))
    more = f" and {len(joined) - 3} more ranges" if len(joined) > 3 else ""
    return f"rows {', '.join(f'{start} to {stop - 1}' for start, stop in joined[:3])}{more}"


class ClusterTransport:
    """Parts as futures on the workers of a client.

    Parameters
    ----------
    client : distributed.Client
        The client.
    opening : Opening
        What all workers need to know.
    futures : sequence of distributed.Future
        The parts.
    rows : list of (int, int)
        The rows [start, stop) of each part.
    """

    def __init__(
        self, client: Any, opening: Opening, futures: Sequence[Any], rows: list[tuple[int, int]]
    ) -> None:
        self.client, self.opening = client, opening
        self._futures, self._rows, self._session = list(futures), rows, uuid4().hex
        self._waiting = Waiting(client)
        has = client.who_has(self._futures)
        self._where = [(has.get(future.key) or [None])[0] for future in self._futures]

    def fork(self) -> "ClusterTransport":
        other = copy(self)
        other._session, other._where = uuid4().hex, list(self._where)
        return other

    def ask(self, question: PartsQuestion) -> list[PartsAnswer]:
        groups = dict[Any, list[int]]()
        for number, worker in enumerate(self._where):
            if question.is_for(number):
                groups.setdefault(worker, []).append(number)
        sent = pickled((self.opening, replace(question, only=None)))
        tasks = [self._submitted(question, sent, *group) for group in groups.items()]
        names = [
            f"X: {rows_in_words([self._rows[number] for number in numbers])}"
            for numbers in groups.values()
        ]
        answers = self._waiting.results(tasks, names)
        for (address, _), numbers in zip(answers, groups.values(), strict=True):
            for number in numbers:
                self._where[number] = address
        return [pickle.loads(answer) for _, answer in answers]

    def _submitted(
        self, question: PartsQuestion, sent: bytes, worker: Any, numbers: list[int]
    ) -> Any:
        """A task for the worker that has these parts; another one takes it if that is gone."""
        key = f"lloydformer-{type(question).__name__.lower()}-{uuid4().hex}"
        return self.client.submit(
            answered, self._session, sent,
            sum(self._rows[i][1] - self._rows[i][0] for i in numbers), numbers,
            [self._futures[number] for number in numbers],
            key=key, pure=False, workers=None if worker is None else [worker],
            allow_other_workers=worker is not None,
        )  # fmt: skip
