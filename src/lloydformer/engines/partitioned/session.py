"""The session of all rows, when they are in partitions: it sends requests and merges results."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.engines.chunked import DrawnBy
from lloydformer.engines.native.engine import Native
from lloydformer.engines.native.folds import SUM_CHANGES
from lloydformer.engines.partitioned.labels import DistributedLabels
from lloydformer.engines.partitioned.partitions import PartitionSpec, Response
from lloydformer.engines.partitioned.requests import (
    ALL_COLUMNS,
    CallRequest,
    CloseRequest,
    DrawRequest,
    FoldRequest,
    ForgetRequest,
    GatherRequest,
    LabelSumsRequest,
    MassRequest,
    ReplayRequest,
    Request,
    add_tuples,
    copy_rows,
    join_rows,
    merge_function,
)
from lloydformer.engines.partitioned.tree_nodes import (
    Node,
    find_node,
    merge_ancestors,
    merge_to_root,
    root,
)
from lloydformer.plans.constrained import BoundedAssignment, GivenLabels
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.minibatch import MinibatchSums
from lloydformer.plans.relocating import Relocation, relocate_by_folds
from lloydformer.plans.seeding import NewSeed
from lloydformer.plans.session import Fold, Session, Task

# How often lost state is computed again for one request before the fit gives up: a worker that dies
# by the request itself (too little memory) would die every time.
_MAX_TRIES = 20
# Below this part of the largest weight that a cluster has had, its sums are added up again: the
# rounding of changes so far may be as large as what is left. As in
# `engines/native/kernels/totals.hpp`.
_LOST_PRECISION = 2.0**-20


@runtime_checkable
class Transport(Protocol):
    """The way from a `PartitionedSession` to the partitions.

    Partitions are numbered, from 0 on. Every row is in exactly one partition, which begins and ends
    at a leaf of the layout. Each partition is held by one `PartitionStore`, which was made with the
    `PartitionSpec` of the session, in this process or in another one.

    The session may be the only one that sends (a client and its workers), or one of several that
    send the same requests in the same order (ranks): then everyone must get the same responses.
    """

    def send(self, request: Request) -> list[Response]:
        """Send a request to everyone who holds partitions; return what `handle` returned.

        Responses may come in any order, and a process without partitions that the request is for
        may be left out. Together they are about every partition that the request is for, exactly
        once; a partition whose process has vanished is given to another one, which then responds
        that the state of this partition is lost, and the session has it computed again
        (`ReplayRequest`). Errors of a process are raised here. It returns, or raises, in bounded
        time.
        """
        ...

    def fork(self) -> "Transport":
        """Return a way to the same rows, with a state of their own."""
        ...


class PartitionedSession(Session):
    """Points in partitions, each of which is opened by the native (or the chunked) engine.

    Folds are bit-identical to those of that engine on all rows in one process. Nothing of size n
    comes here, except for a search for medoids: labels stay with the points (`DistributedLabels`).
    """

    def __init__(self, spec: PartitionSpec, transport: Transport) -> None:
        self.spec, self._transport = spec, transport
        # Every request that changes the state of the points gets a number, the version of that
        # state. A partition with another version has lost its state, with its worker.
        self._journal, self._version, self._new_versions = Journal(), 0, count(1)
        self._sums: RunningSums | None = None
        self._drawn_points = dict[int, Tensor]()  # points of the last draw, by row
        self._node_masses: dict[Node, float] | None = None  # if the last fold has computed them
        self.resources = ExitStack()
        self._all_rows: Session | None = None  # over a copy of all rows, for a search for medoids

    @property
    def layout(self) -> Layout:
        return self.spec.layout

    def fold(self, fold: Fold) -> Any:
        with self._forget_on_error():
            if self.spec.single:
                return self._call("fold", fold, changes=True)
            results = self.send(FoldRequest(fold=fold), changes=True)
            raw, is_plain = self._merge_fold(fold, results)
            kernel = None if is_plain else self.spec.kernel(fold)
            if kernel is None:
                return raw
            if kernel is SUM_CHANGES:
                return self._update_sums(raw)
            if isinstance(fold, NewSeed):
                masses = _join_nodes([nodes for nodes, _ in results])
                self._node_masses = {node: mass.item() for node, (mass,) in masses.items()}
            summary = kernel.finish(fold, raw)
            if summary is not None:
                return summary
            # `finish` has declined: the plain fold is more precise.
            plain, _ = self._merge_fold(
                fold, self.send(FoldRequest(fold=fold, plain=True), changes=True)
            )
            return kernel.instead(plain, raw)

    def run(self, task: Task) -> Any | None:
        # Labels within bounds depend on all rows: they are written by a fold that can be run again.
        if self.spec.single and not isinstance(task, BoundedAssignment):
            with self._forget_on_error():
                return self._call("run", task, changes=True)
        if isinstance(task, MedoidMove | BoundedAssignment) and self.spec.engine == "native":
            # All rows come here, once: the kernels need every row at any time.
            if self._all_rows is None:
                rows = copy_rows(self._transport, self.spec, torch.arange(self.layout.n_rows))
                self._all_rows = self.resources.enter_context(Native().open(rows))
            found = self._all_rows.run(task)
            if isinstance(task, BoundedAssignment) and found is not None:
                self.fold(GivenLabels(self._all_rows.labels()))
            return found
        if isinstance(task, MinibatchSums):  # the rows of a mini-batch come here
            rows = copy_rows(self._transport, self.spec, task.rows)
            with self.spec.make_engine(1).open(rows) as session:
                return session.run(replace(task, rows=torch.arange(len(task.rows))))
        if isinstance(task, Relocation):
            # By folds, with a state of their own, as the native kernel keeps that of the session.
            other = PartitionedSession(self.spec, self._transport.fork())
            result = relocate_by_folds(other, task.centers, task.n_moved, task.draws)
            other.send(CloseRequest())
            return result
        return None

    def gather(self, rows: Tensor) -> Tensor:
        numbers = rows.tolist()
        if self._drawn_points.keys() >= set(numbers):  # seeding takes the rows that it has drawn
            return torch.stack([self._drawn_points[row] for row in numbers])
        return join_rows(self.send(GatherRequest(rows=rows)), len(rows))[0]

    def draw_by_distance(self, fractions: Tensor) -> Tensor:
        if self.spec.single:
            return self._call("draw_by_distance", fractions)
        n_leaves = self.layout.n_leaves
        masses = self._node_masses or self._request_masses("distance")
        every = merge_ancestors(operator.add, masses, n_leaves)
        targets = [fraction * every[root(n_leaves)] for fraction in fractions.tolist()]
        places = [find_node(every, masses, target, n_leaves) for target in targets]
        asked = {node: [rest for at, rest in places if at == node] for node, _ in places}
        rows = {node: iter(each) for node, each in self._draw("distance", (), asked).items()}
        return torch.tensor([next(rows[node]) for node, _ in places])

    def draw_by_weight(self, fractions: Tensor) -> Tensor:
        if self.spec.single:
            return self._call("draw_by_weight", fractions)
        masses, drawn, n_leaves = self._request_masses("weight"), list[int](), self.layout.n_leaves
        for fraction in fractions.tolist():
            every = merge_ancestors(operator.add, masses, n_leaves)
            node, rest = find_node(every, masses, fraction * every[root(n_leaves)], n_leaves)
            drawn += self._draw("weight", tuple(drawn), {node: [rest]})[node]
            masses |= self._request_masses("weight", tuple(drawn), frozenset({node}))
        return torch.tensor(drawn)

    def labels(self) -> Any:
        """Return the labels of all points, as `DistributedLabels`: they stay where they are."""
        return DistributedLabels(self, self._journal.folds_for({"labels", "trimmed"}))

    def trimmed(self) -> Tensor | None:
        """None: `labels` knows which points are trimmed."""
        return None

    def forget(self) -> None:
        self._sums = None
        self.send(ForgetRequest(), changes=True)

    def snapshot(self) -> tuple[Any, ...] | None:
        """Return what `restore` needs to continue bit-identically; small.

        None where all rows are one node: its kernels keep running sums that depend on all
        iterations so far, and cannot be restored to the bit.
        """
        if self.spec.single:
            return None
        sums = None if self._sums is None else vars(self._sums).copy()
        return self._journal.entries, self._version, sums

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Become the session of a snapshot. Partitions compute their state when it is needed."""
        self._journal.entries, self._version, sums = snapshot
        self._sums = None
        if sums is not None:
            self._sums = RunningSums(*sums["sums"].shape)
            vars(self._sums).update(sums)
        self._new_versions, self._node_masses = count(self._version + 1), None
        self._drawn_points = {}

    def send(self, request: Request, *, reads: bool = False, changes: bool = False) -> list[Any]:
        """Return the results of a request; partitions that lost their state compute it again.

        Parameters
        ----------
        request : Request
            Without versions.
        reads : bool
            Its result depends on the state of the points.
        changes : bool
            It changes the state of the points, and enters the journal.
        """
        if reads or changes:
            request = replace(request, version=self._version)
        if changes:
            self._node_masses = None
            request = replace(request, next_version=next(self._new_versions))
        results: list[Any] = []
        sent, lost = request, frozenset[int]()
        for _ in range(_MAX_TRIES):
            responses = self._transport.send(sent)
            results += [response.result for response in responses if response.result is not None]
            lost = frozenset(number for response in responses for number in response.lost)
            if not lost:
                break
            # The results of the others stay: only the lost partitions run the request again.
            replay = ReplayRequest(entries=self._journal.entries)
            self._transport.send(replace(replay, next_version=self._version, only=lost))
            sent = replace(request, only=lost)
        else:
            message = f"parts {sorted(lost)} were lost {_MAX_TRIES} times in one iteration"
            raise RuntimeError(message)
        if changes:
            if results or not isinstance(request, CallRequest):  # else a task was declined
                self._journal.add(request)
            assert request.next_version is not None
            self._version = request.next_version
        return results

    @contextmanager
    def _forget_on_error(self) -> Iterator[None]:
        """After an error no partition has the state that it should have: compute it again."""
        try:
            yield
        except BaseException:
            self._sums, self._version = None, next(self._new_versions)
            self._journal.add(ForgetRequest())
            raise

    def _call(self, method: str, *arguments: Any, changes: bool = False) -> Any:
        """Call a method of the session of all rows, where they are one node."""
        request = CallRequest(method=method, arguments=arguments)
        results = self.send(request, reads=True, changes=changes)
        return results[0] if results else None

    def _merge_fold(self, fold: Fold, results: list[Any]) -> tuple[Any, bool]:
        """Return the summary of all rows, and whether the plain fold has run."""
        is_plain = results[0][1]
        merge, nodes = merge_function(self.spec, fold, is_plain), (each for each, _ in results)
        return merge_to_root(merge, _join_nodes(nodes), self.layout.n_leaves), is_plain

    def _update_sums(self, raw: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return the summary of `NearestSums`, from the changes of all partitions."""
        *changes, changed, fresh = raw
        k, d = changes[0].shape
        if self._sums is None or fresh:
            self._sums = RunningSums(k, d)
        self._sums.add(*changes)
        if self._sums.is_imprecise:
            nodes = _join_nodes(self.send(LabelSumsRequest(n_clusters=k), reads=True))
            self._sums = RunningSums(k, d)
            self._sums.add(*merge_to_root(add_tuples, nodes, self.layout.n_leaves))
        return self._sums.sums, self._sums.masses, changed

    def _request_masses(
        self, by: DrawnBy, drawn: tuple[int, ...] = (), nodes: frozenset[Node] | None = None
    ) -> dict[Node, float]:
        return _join_nodes(self.send(MassRequest(by=by, drawn=drawn, nodes=nodes), reads=True))

    def _draw(
        self, by: DrawnBy, drawn: tuple[int, ...], asked: dict[Node, list[float]]
    ) -> dict[Node, list[int]]:
        """Return rows for the targets within each node; their points are kept for `gather`."""
        targets = tuple((node, tuple(rests)) for node, rests in asked.items())
        request = DrawRequest(by=by, drawn=drawn, targets=targets)
        nodes = _join_nodes(self.send(request, reads=True))
        pairs = (pair for rows, points in nodes.values() for pair in zip(rows, points, strict=True))
        self._drawn_points = dict(pairs)
        return {node: rows for node, (rows, _) in nodes.items()}


def _join_nodes(results: Iterable[Mapping[Node, Any]]) -> dict[Node, Any]:
    return {node: value for some in results for node, value in some.items()}


class Journal:
    """The requests that compute the state of the points as it is now, as `entries`.

    State that is lost with a worker is computed again. Only those requests are kept whose
    columns have not been overwritten since: a few folds, or the seeds of k-means++ so far.
    """

    def __init__(self) -> None:
        self.entries: tuple[Request, ...] = ()

    def folds_for(self, columns: Iterable[str]) -> tuple[Fold, ...]:
        """Return the folds that write these columns as they are now."""
        folds = [entry for entry in self.entries if hasattr(entry.work, "writes")]
        return tuple(entry.work for entry in _select_entries(folds, frozenset(columns)))

    def add(self, request: Request) -> None:
        """Add a request that has changed the state, and drop what it has made needless.

        The last request always stays: a session may know more of it than the columns hold.
        """
        writes, writes_from = request.columns
        needed = (ALL_COLUMNS - writes) | writes_from
        self.entries = (*_select_entries(self.entries, needed), request)


def _select_entries(entries: Iterable[Request], needed: frozenset[str]) -> list[Request]:
    """Return the requests that compute these columns, in their order."""
    kept = []
    for entry in reversed(list(entries)):
        writes, writes_from = entry.columns
        if writes & needed:
            kept.append(entry)
            needed = (needed - writes) | writes_from
    return kept[::-1]


class RunningSums:
    """Sums of points by label from one iteration to the next, as the native engine keeps them.

    Only points that change their label change sums. The rules are those of
    `engines/native/kernels/totals.hpp`, for changes that come from all partitions: sums (k, d),
    masses (k,) and numbers of points (k,) of all clusters.
    """

    def __init__(self, n_clusters: int, n_features: int) -> None:
        self.sums = torch.zeros(n_clusters, n_features, dtype=torch.float64)
        self.masses = torch.zeros(n_clusters, dtype=torch.float64)
        self.counts = torch.zeros(n_clusters, dtype=torch.int64)
        self._peaks = torch.zeros(n_clusters, dtype=torch.float64)

    def add(self, sums: Tensor, masses: Tensor, counts: Tensor) -> None:
        """Add changes. A cluster without points becomes exactly zero, whatever rounding left."""
        self.counts = self.counts + counts
        empty = self.counts == 0
        self.sums = (self.sums + sums).masked_fill(empty[:, None], 0.0)
        self.masses = (self.masses + masses).masked_fill(empty, 0.0)
        self._peaks = torch.maximum(self._peaks, self.masses)

    @property
    def is_imprecise(self) -> bool:
        """True if rounding has left too little of the sums of a cluster."""
        return bool(((self.counts > 0) & (self.masses < _LOST_PRECISION * self._peaks)).any())
