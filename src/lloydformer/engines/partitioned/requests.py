"""Requests to the processes that hold partitions.

A request is a small value. A session sends it, and its method `run` is called in each process that
holds partitions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import DrawnBy
from lloydformer.engines.native.engine import NativeSession
from lloydformer.engines.native.folds import label_sums
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.engines.partitioned.partitions import (
    OpenNode,
    OpenPartition,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
)
from lloydformer.engines.partitioned.tree_nodes import Node, merge_nodes
from lloydformer.engines.state import COLUMNS
from lloydformer.plans.seeding import NewSeed
from lloydformer.plans.session import Fold

ALL_COLUMNS = frozenset(COLUMNS)
Partitions = list[OpenPartition]
# Labels (m,), and the mask of trimmed points (m,) or None.
Labelling = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The base class of all requests.

    Attributes
    ----------
    version : int or None
        The version that the state of a partition must have; a partition with another version does
        not run the request, and is reported as lost. None: any version will do.
    next_version : int or None
        The version of the state after the request; None: the request does not change the state.
    only : frozenset of int or None
        Numbers of the partitions to run on; None: all partitions.
    """

    version: int | None = None
    next_version: int | None = None
    only: frozenset[int] | None = None

    def is_for(self, number: int) -> bool:
        """Return True if partition `number` must run the request."""
        return self.only is None or number in self.only

    @property
    def work(self) -> Any:
        """The fold or the task that the request runs; None if it runs neither."""
        return None

    @property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """Columns of the state that the request overwrites, and those that it computes them from.

        A `Journal` keeps a request as long as a column that it wrote is needed.
        """
        if not hasattr(self.work, "writes"):  # unknown: it may have read and written any column
            return ALL_COLUMNS, ALL_COLUMNS
        return frozenset(self.work.writes), frozenset(getattr(self.work, "writes_from", ()))

    def run(self, store: PartitionStore, partitions: Partitions) -> Any:
        """Run the request on these partitions of `store`, and return the result."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FoldRequest(Request):
    """Run a fold over the rows of each node, and merge neighbouring nodes as far as possible.

    Returns the summaries by node, and True if they are those of the plain fold.

    Attributes
    ----------
    fold : Fold
        The fold.
    plain : bool
        Run the plain fold although there is a kernel.
    """

    fold: Fold
    plain: bool = False

    @property
    def work(self) -> Any:
        return self.fold

    def run(self, store: PartitionStore, partitions: Partitions) -> tuple[dict[Node, Any], bool]:
        spec, fold, nodes = store.spec, self.fold, open_nodes(partitions)
        kernel, found = None if self.plain else spec.kernel(fold), list[Any]()
        if kernel is not None:
            found = list(store.map(kernel.run, open_points(nodes), repeat(fold)))
        # All nodes decline, or none: that depends on the fold and the precision alone.
        is_plain = kernel is None or found[0] is None
        if is_plain:
            found = list(store.map(lambda node: node.session.plain_fold(fold), nodes))
        summaries = by_node(nodes, found)
        if not isinstance(fold, NewSeed):  # after `NewSeed` the session draws by the mass of nodes
            merge = merge_function(spec, fold, is_plain)
            summaries = merge_nodes(merge, summaries, spec.layout.n_leaves)
        return summaries, is_plain


@dataclass(frozen=True, kw_only=True)
class LabelSumsRequest(Request):
    """Return sums, masses and counts of the points by label, computed from all points.

    Precondition: `NearestSums` was the last fold, on the native engine.
    """

    n_clusters: int

    def run(self, store: PartitionStore, partitions: Partitions) -> dict[Node, Any]:
        nodes = open_nodes(partitions)
        sums = store.map(label_sums, open_points(nodes), repeat(self.n_clusters))
        return merge_nodes(add_tuples, by_node(nodes, sums), store.spec.layout.n_leaves)


@dataclass(frozen=True, kw_only=True)
class ForgetRequest(Request):
    """Forget the labels of the last iteration."""

    @property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset({"previous"}), frozenset()

    def run(self, store: PartitionStore, partitions: Partitions) -> None:
        for node in open_nodes(partitions):
            node.session.forget()


@dataclass(frozen=True, kw_only=True)
class MassRequest(Request):
    """Return the mass of each node: rows are drawn with probabilities proportional to their mass.

    Attributes
    ----------
    by : {"distance", "weight"}
        The mass of a row: "distance", its weight times its squared distance to the nearest center;
        "weight", its weight alone.
    drawn : tuple of int
        Global numbers of rows that are drawn already; their mass is 0.
    nodes : frozenset of Node or None
        The nodes to compute it for; None: all nodes.
    """

    by: DrawnBy
    drawn: tuple[int, ...] = ()
    nodes: frozenset[Node] | None = None

    def run(self, store: PartitionStore, partitions: Partitions) -> dict[Node, float]:
        every = open_nodes(partitions)
        chosen = [node for node in every if self.nodes is None or node.node in self.nodes]
        masses = store.map(lambda node: node.mass(self.by, self.drawn), chosen)
        return by_node(chosen, masses)


@dataclass(frozen=True, kw_only=True)
class DrawRequest(Request):
    """Draw rows: return their global numbers and their points, by node.

    Attributes
    ----------
    by : {"distance", "weight"}
        The mass of a row: "distance", its weight times its squared distance to the nearest center;
        "weight", its weight alone.
    drawn : tuple of int
        Global numbers of rows that are drawn already; their mass is 0.
    targets : tuple of (Node, tuple of float)
        Nodes, and in each the targets: a target draws the row at which the running sum of the
        masses, from the first row of the node, exceeds it.
    """

    by: DrawnBy
    drawn: tuple[int, ...]
    targets: tuple[tuple[Node, tuple[float, ...]], ...]

    def run(
        self, store: PartitionStore, partitions: Partitions
    ) -> dict[Node, tuple[list[int], Tensor]]:
        here = {node.node: node for node in open_nodes(partitions)}
        return {
            node: here[node].locate_rows(self.by, self.drawn, targets)
            for node, targets in self.targets
            if node in here
        }


@dataclass(frozen=True, kw_only=True)
class GatherRequest(Request):
    """Return some rows: for each partition that has some, their places, points and weights.

    A place is an index into `rows`; weights are None if the data have none.

    Attributes
    ----------
    rows : Tensor of shape (m,)
        Global numbers of the rows.
    placed : bool
        Return points in the coordinates of the layout; otherwise in the units of the user.
    """

    rows: Tensor
    placed: bool = True

    def run(
        self, store: PartitionStore, partitions: Partitions
    ) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        rows, results = self.rows, []
        for blocks in (partition.blocks for partition in partitions):
            first, weights = blocks.first_row, blocks.sample_weight
            places = ((rows >= first) & (rows < first + blocks.n_rows)).nonzero()[:, 0]
            if len(places):
                here = rows[places] - first
                points = blocks.take(here) if self.placed else blocks.points[here]
                results.append((places, points, None if weights is None else weights[here]))
        return results


@dataclass(frozen=True, kw_only=True)
class CallRequest(Request):
    """Call a method of the session of all rows. Precondition: all rows are one node.

    Attributes
    ----------
    method : str
        The name of the method.
    arguments : tuple
        Its arguments; the first one of "fold" and "run" is the fold or the task.
    """

    method: str
    arguments: tuple[Any, ...]

    @property
    def work(self) -> Any:
        return self.arguments[0]

    def run(self, store: PartitionStore, partitions: Partitions) -> Any:
        ((node,),) = (partition.nodes for partition in partitions)
        return getattr(node.session, self.method)(*self.arguments)


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(Request):
    """Compute the state of partitions again by running the requests of a journal.

    Attributes
    ----------
    entries : tuple of Request
        The `entries` of the `Journal`, in their order.
    """

    entries: tuple[Request, ...]

    def run(self, store: PartitionStore, partitions: Partitions) -> None:
        # The state may be half written, or of an earlier version: start without one.
        for partition in partitions:
            partition.close()
        for entry in self.entries:
            entry.run(store, partitions)


@dataclass(frozen=True, kw_only=True)
class LabelsRequest(Request):
    """Return the first row of each partition, with the value of a function of its labels.

    Labels are computed in temporary sessions: the state of the partitions does not change.

    Attributes
    ----------
    folds : tuple of tuple of Fold
        For each labelling, the folds that compute it.
    function : callable
        Called with one `Labelling` for each entry of `folds`.
    """

    folds: tuple[tuple[Fold, ...], ...]
    function: Callable[..., Any]

    def run(self, store: PartitionStore, partitions: Partitions) -> list[tuple[int, Any]]:
        results = []
        for blocks in (partition.blocks for partition in partitions):
            labellings = (compute_labels(store.spec, blocks, folds) for folds in self.folds)
            results.append((blocks.first_row, self.function(*labellings)))
        return results


@dataclass(frozen=True, kw_only=True)
class WeightsRequest(Request):
    """Return the first row and the weights of each partition; nothing for data without weights."""

    def run(self, store: PartitionStore, partitions: Partitions) -> list[tuple[int, Tensor]]:
        blocks = [partition.blocks for partition in partitions]
        return [(b.first_row, b.sample_weight) for b in blocks if b.sample_weight is not None]


@dataclass(frozen=True, kw_only=True)
class CloseRequest(Request):
    """Free the state of the points, but keep the points. The version is 0 afterwards."""

    next_version: int | None = 0

    def run(self, store: PartitionStore, partitions: Partitions) -> None:
        for partition in partitions:
            partition.close()


def merge_function(spec: PartitionSpec, fold: Fold, is_plain: bool) -> Callable[[Any, Any], Any]:
    """Return the function that merges the summaries of nodes.

    `is_plain`: the summaries are those of the plain fold, not of a kernel.
    """
    kernel = None if is_plain else spec.kernel(fold)
    return (kernel and kernel.merge) or fold.merge


def open_nodes(partitions: Partitions) -> list[OpenNode]:
    """Return the nodes of all partitions; opens those that are not open."""
    return [node for partition in partitions for node in partition.nodes]


def by_node(nodes: Iterable[OpenNode], results: Iterable[Any]) -> dict[Node, Any]:
    """Return the result of each node, by the place of the node in the tree."""
    return dict(zip((node.node for node in nodes), results, strict=True))


def open_points(nodes: Iterable[OpenNode]) -> Iterator[OpenPoints]:
    """Return the points of these nodes as kernels take them. Precondition: the native engine."""
    for node in nodes:
        assert isinstance(node.session, NativeSession)
        yield node.session.points


def add_tuples(first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
    """Return the sums of the tensors at the same place in two tuples."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


def copy_rows(transport: Any, spec: PartitionSpec, rows: Tensor) -> TensorBlocks:
    """Copy some rows to this process; returns blocks in the same coordinates."""
    responses = transport.send(GatherRequest(rows=rows, placed=False))
    results = [response.result for response in responses if response.result is not None]
    return spec.open_rows(PartitionRows(0, *join_rows(results, len(rows))))


def join_rows(results: list[Any], n_rows: int) -> tuple[Tensor, Tensor | None]:
    """Return rows in the order of their `GatherRequest`, and their weights, from its results."""
    found = list(chain.from_iterable(results))
    order = torch.cat([places for places, _, _ in found]).argsort()
    assert len(order) == n_rows, "every row is in one partition"
    rows = torch.cat([rows for _, rows, _ in found])[order]
    if found[0][2] is None:
        return rows, None
    return rows, torch.cat([weights for _, _, weights in found])[order]


def compute_labels(spec: PartitionSpec, blocks: TensorBlocks, folds: tuple[Fold, ...]) -> Labelling:
    """Return the labels of these rows after these folds. They do not depend on other rows."""
    with spec.make_engine(1).open(blocks) as session:
        for fold in folds:
            session.fold(fold)
        return session.labels(), session.trimmed()
