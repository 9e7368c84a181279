"""A discrete-event simulation of passes over points on a cluster.

Events are kept in a queue by their time. A worker maps its rows; a message occupies the sending
side of its source, travels, and occupies the receiving side of its target. Summaries go around a
ring (ranks: everyone gets all of them), or up a tree of workers and the centers down it again.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import numpy as np
from cost_model import Network, Pass, Problem, Worker, shares, subtrees


class Clock:
    """Runs actions in the order of their times; those of the same time as they were entered."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time, next(self._number), action))

    def run(self) -> None:
        while self._queue:
            self.now, _, action = heapq.heappop(self._queue)
            action()


@dataclass
class Port:
    """A resource that does one thing at a time: a processor, a side of a network card."""

    free: float = 0.0

    def use(self, begin: float, seconds: float) -> float:
        """Work for this long, at the earliest from `begin`; returns the end."""
        self.free = max(begin, self.free) + seconds
        return self.free


@dataclass(frozen=True)
class Trouble:
    """Slow workers and failures of a simulation.

    Attributes
    ----------
    jitter : float
        Standard deviation of the logarithm of every worker's time for a pass.
    share, factor : float
        This share of the workers takes so many times as long, drawn anew for every pass.
    failures : float
        Failures of one worker in a second.
    noticed : float
        Seconds until a failure is noticed and another worker begins.
    reload : float
        Bytes in a second with which that worker reads the rows again.
    seed : int
        Of the random numbers.
    """

    jitter: float = 0.0
    share: float = 0.0
    factor: float = 1.0
    failures: float = 0.0
    noticed: float = 0.0
    reload: float = math.inf
    seed: int = 0


@dataclass
class Account:
    """Totals of a simulation.

    Attributes
    ----------
    seconds : list of float
        Time of each pass, until the last worker can begin the next one.
    messages, sent, received : int
        Messages, and their bytes at both ends.
    rows : list of int
        Rows that the merged summary of each pass stands for.
    failures : int
        Workers that failed.
    """

    seconds: list[float] = field(default_factory=list)
    messages: int = 0
    sent: int = 0
    received: int = 0
    rows: list[int] = field(default_factory=list)
    failures: int = 0


class Cluster:
    """Workers with their rows, a network, and how summaries are exchanged.

    exchange: "ring" for an all-gather of all summaries, "tree" with a fan-in.
    """

    def __init__(
        self,
        problem: Problem,
        n_workers: int,
        worker: Worker,
        network: Network,
        exchange: Literal["ring", "tree"] = "tree",
        fan_in: int = 2,
        trouble: Trouble | None = None,
    ) -> None:
        self.problem, self.n_workers = problem, n_workers
        self.worker, self.network = worker, network
        self.exchange, self.fan_in, self.trouble = exchange, fan_in, trouble or Trouble()
        self.leaves = shares(problem.n_leaves, n_workers)
        self.random = np.random.default_rng(self.trouble.seed)

    def run(self, passes: Sequence[Pass]) -> Account:
        """Play passes one after the other."""
        account = Account()
        for one in passes:
            played = (_Ring if self.exchange == "ring" else _Tree)(self, one, account)
            played.begin()
            played.clock.run()
            account.seconds.append(played.clock.now)
        return account

    def n_rows(self, first: int, last: int) -> int:
        """Rows of the workers [first, last)."""
        if first >= last:
            return 0
        start, stop = self.leaves[first][0], self.leaves[last - 1][1]
        leaf = self.problem.leaf
        return min(stop * leaf, self.problem.n_rows) - min(start * leaf, self.problem.n_rows)

    def message(self, one: Pass, first: int, last: int) -> int:
        """Bytes of the summaries of the workers [first, last), merged as far as they can be."""
        start, stop = self.leaves[first][0], self.leaves[last - 1][1]
        return one.summary * subtrees(start, stop, self.problem.n_leaves)


class _Played:
    """One pass: the map of every worker, with its trouble, and messages between them."""

    def __init__(self, cluster: Cluster, one: Pass, account: Account) -> None:
        self.cluster, self.one, self.account = cluster, one, account
        self.clock, n = Clock(), cluster.n_workers
        self.sending, self.receiving, self.adding = ([Port() for _ in range(n)] for _ in range(3))
        self.slow = self._slowness(n)

    def _slowness(self, n_workers: int) -> np.ndarray:
        trouble, random = self.cluster.trouble, self.cluster.random
        slow = np.exp(trouble.jitter * random.standard_normal(n_workers))
        return np.where(random.random(n_workers) < trouble.share, trouble.factor, 1.0) * slow

    def map(self, number: int, then: Callable[[], None]) -> None:
        """Map the rows of a worker from now on; after a failure another one reads and maps them."""
        cluster, trouble = self.cluster, self.cluster.trouble
        n_rows = cluster.n_rows(number, number + 1)
        seconds = cluster.worker.seconds(cluster.problem, self.one, n_rows) * self.slow[number]
        fails = math.inf
        if trouble.failures:
            fails = cluster.random.exponential(1 / trouble.failures)
        if fails >= seconds:
            return self.clock.at(self.clock.now + seconds, then)
        self.account.failures += 1
        again = fails + trouble.noticed + n_rows * cluster.problem.row_bytes / trouble.reload
        return self.clock.at(self.clock.now + again, lambda: self.map(number, then))

    def send(self, source: int, target: int, n_bytes: int, then: Callable[[], None]) -> None:
        """One message; `then` is called when its last byte has arrived."""
        network, clock = self.cluster.network, self.clock
        took = n_bytes / network.bandwidth
        self.account.messages += 1
        self.account.sent += n_bytes

        def arrive() -> None:
            clock.at(self.receiving[target].use(clock.now, took), receive)

        def receive() -> None:
            self.account.received += n_bytes
            then()

        begun = self.sending[source].use(clock.now, took) - took
        clock.at(begun + network.latency, arrive)

    def add(self, number: int, n_bytes: int) -> float:
        """A worker adds so many bytes of summaries; returns when it has done so."""
        return self.adding[number].use(self.clock.now, n_bytes / self.cluster.worker.adding)


class _Ring(_Played):
    """Every worker passes on what it gets, and adds up everything itself.

    A worker that still maps its own rows passes on later, in truth; but its own summary, which has
    the whole way before it, is then the last to arrive, so that the time of the pass is the same.
    """

    def begin(self) -> None:
        n = self.cluster.n_workers
        self.rows, self.got, self.gathered = [0] * n, [0] * n, [0] * n
        for number in range(n):
            self.map(number, lambda number=number: self._take(number, number))

    def _take(self, number: int, origin: int) -> None:
        cluster, following = self.cluster, (number + 1) % self.cluster.n_workers
        n_bytes = cluster.message(self.one, origin, origin + 1)
        self.got[number] += 1
        self.gathered[number] += n_bytes
        self.rows[number] += cluster.n_rows(origin, origin + 1)
        if following != origin:
            self.send(number, following, n_bytes, lambda: self._take(following, origin))
        if self.got[number] == cluster.n_workers:
            self.clock.at(self.add(number, self.gathered[number]), lambda: self._finish(number))

    def _finish(self, number: int) -> None:
        if number == 0:
            self.account.rows.append(self.rows[0])


class _Tree(_Played):
    """The first of `fan_in` neighbours adds up their summaries, and so on upwards."""

    def begin(self) -> None:
        n = self.cluster.n_workers
        self.children: list[list[int]] = [[] for _ in range(n)]
        for number in range(1, n):
            self.children[self._parent(number)].append(number)
        self.missing = [1 + len(children) for children in self.children]
        self.rows, self.last = [0] * n, [number + 1 for number in range(n)]
        self.scheduler = Port()
        self._inform(0)

    def _parent(self, number: int) -> int:
        stride = 1
        while number % (stride * self.cluster.fan_in) == 0:
            stride *= self.cluster.fan_in
        return number - number % (stride * self.cluster.fan_in)

    def _inform(self, number: int) -> None:
        """A worker has the centers: pass them on, farthest first, and map."""
        for child in reversed(self.children[number]):
            self.send(number, child, self.one.broadcast, lambda child=child: self._inform(child))
        handed = self.scheduler.use(self.clock.now, self.cluster.network.per_task)
        self.clock.at(handed, lambda: self.map(number, lambda: self._finish_map(number)))

    def _finish_map(self, number: int) -> None:
        self.rows[number] += self.cluster.n_rows(number, number + 1)
        self._one_less(number)

    def _finish_add(self, number: int, child: int) -> None:
        self.rows[number] += self.rows[child]
        self.last[number] = max(self.last[number], self.last[child])
        self._one_less(number)

    def _one_less(self, number: int) -> None:
        self.missing[number] -= 1
        if self.missing[number]:
            return
        if number == 0:
            self.account.rows.append(self.rows[0])
            return
        parent = self._parent(number)
        n_bytes = self.cluster.message(self.one, number, self.last[number])
        self.send(number, parent, n_bytes, lambda: self._receive(parent, number, n_bytes))

    def _receive(self, parent: int, child: int, n_bytes: int) -> None:
        self.clock.at(self.add(parent, n_bytes), lambda: self._finish_add(parent, child))
