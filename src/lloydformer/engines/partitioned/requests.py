"""Requests to the processes that hold partitions: values that can be sent, and run there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import DrawnBy
from lloydformer.engines.native.engine import NativeSession
from lloydformer.engines.native.folds import label_sums
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


@dataclass(frozen=True, kw_only=True)
class Request:
    """The fields of every request.

    Attributes
    ----------
    version : int or None
        The version that the state of a partition must have; None: any.
    next_version : int or None
        The version of the state afterwards; None: the request does not change it.
    only : frozenset of int or None
        Numbers of the partitions that it is for; None: all.
    """

    version: int | None = None
    next_version: int | None = None
    only: frozenset[int] | None = None

    def is_for(self, number: int) -> bool:
        return self.only is None or number in self.only

    @property
    def work(self) -> Any:
        """The fold or the task that it runs; None: it runs none."""
        return None

    @property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """The columns that it overwrites, and those that the new values depend on."""
        if not hasattr(self.work, "writes"):  # anything may have happened
            return ALL_COLUMNS, ALL_COLUMNS
        return frozenset(self.work.writes), frozenset(getattr(self.work, "writes_from", ()))

    def run(self, store: PartitionStore, partitions: Partitions) -> Any:
        """Return the result for these partitions."""
        raise NotImplementedError


def merge_function(spec: PartitionSpec, fold: Fold, plain: bool) -> Callable[[Any, Any], Any]:
    """Return the function that merges the summaries of nodes."""
    kernel = None if plain else spec.kernel(fold)
    return (kernel and kernel.merge) or fold.merge


def open_nodes(partitions: Partitions) -> list[OpenNode]:
    """Return the nodes of all partitions, opened."""
    return [node for partition in partitions for node in partition.nodes]


@dataclass(frozen=True, kw_only=True)
class FoldRequest(Request):
    """Run a fold: return the summaries of the fewest nodes, and whether the plain fold has run."""

    fold: Fold
    plain: bool = False

    @property
    def work(self) -> Any:
        return self.fold

    def run(self, store: PartitionStore, partitions: Partitions) -> tuple[dict[Node, Any], bool]:
        spec, fold = store.spec, self.fold
        kernel = None if self.plain else spec.kernel(fold)

        def fold_node(node: OpenNode) -> tuple[Any, bool]:
            session = node.session
            if not isinstance(session, NativeSession):
                return session.fold(fold), True
            raw = None if kernel is None else session.run_kernel(kernel, fold)
            return (session.plain_fold(fold), True) if raw is None else (raw, False)

        results = store.map_nodes(fold_node, open_nodes(partitions))
        summaries = {node: summary for node, (summary, _) in results.items()}
        # It depends on the fold and the precision alone: equal for all nodes.
        plain = next(is_plain for _, is_plain in results.values())
        if not isinstance(fold, NewSeed):  # for which the session draws by the mass of each node
            merge = merge_function(spec, fold, plain)
            summaries = merge_nodes(merge, summaries, spec.layout.n_leaves)
        return summaries, plain


@dataclass(frozen=True, kw_only=True)
class LabelSumsRequest(Request):
    """Sum up the points by label from the beginning, after `NearestSums` on the native engine."""

    n_clusters: int

    def run(self, store: PartitionStore, partitions: Partitions) -> dict[Node, Any]:
        def sum_node(node: OpenNode) -> Any:
            assert isinstance(node.session, NativeSession)
            return label_sums(node.session.points, self.n_clusters)

        sums = store.map_nodes(sum_node, open_nodes(partitions))
        return merge_nodes(add_tuples, sums, store.spec.layout.n_leaves)


def add_tuples(first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
    """Add up tuples of tensors."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


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
    """Return the mass of the rows of each node, for a draw.

    Attributes
    ----------
    by : {"distance", "weight"}
        What rows are drawn by.
    drawn : tuple of int
        Rows that are drawn already.
    nodes : frozenset of Node or None
        The nodes that are asked; None: all.
    """

    by: DrawnBy
    drawn: tuple[int, ...] = ()
    nodes: frozenset[Node] | None = None

    def run(self, store: PartitionStore, partitions: Partitions) -> dict[Node, float]:
        every, wanted = open_nodes(partitions), self.nodes
        asked = [node for node in every if wanted is None or node.node in wanted]
        return store.map_nodes(lambda node: node.mass(self.by, self.drawn), asked)


@dataclass(frozen=True, kw_only=True)
class DrawRequest(Request):
    """Return the rows where the running mass within some nodes exceeds targets, and the points."""

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
    """Return some rows by their global numbers: their places in the list, the rows, the weights.

    Attributes
    ----------
    rows : Tensor of shape (m,)
        The global numbers.
    placed : bool
        Rows are in the coordinates of the layout; otherwise in the units of the user.
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


def copy_rows(transport: Any, spec: PartitionSpec, rows: Tensor) -> TensorBlocks:
    """Return a copy of some rows as blocks in this process, in the same coordinates."""
    responses = transport.send(GatherRequest(rows=rows, placed=False))
    results = [response.result for response in responses if response.result is not None]
    return spec.open_rows(PartitionRows(0, *join_rows(results, len(rows))))


def join_rows(results: list[Any], n_rows: int) -> tuple[Tensor, Tensor | None]:
    """Return rows in the order in which `GatherRequest` asked for them, and their weights."""
    found = [each for some in results for each in some]
    order = torch.cat([places for places, _, _ in found]).argsort()
    assert len(order) == n_rows, "every row is in one partition"
    rows = torch.cat([rows for _, rows, _ in found])[order]
    if found[0][2] is None:
        return rows, None
    return rows, torch.cat([weights for _, _, weights in found])[order]


@dataclass(frozen=True, kw_only=True)
class CallRequest(Request):
    """Call a method of the session of all rows, where they are one node."""

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
    """Compute the state of partitions again, from the beginning, by the requests of a journal."""

    entries: tuple[Request, ...]

    def run(self, store: PartitionStore, partitions: Partitions) -> None:
        # What is left of the state may be half written, or of an earlier version.
        for partition in partitions:
            partition.close()
        for entry in self.entries:
            entry.run(store, partitions)


@dataclass(frozen=True, kw_only=True)
class LabelsRequest(Request):
    """Return a function of the labels that folds compute, with the first row of each partition.

    The state of the partitions stays as it is: labels are computed by sessions of their own.

    Attributes
    ----------
    folds : tuple of tuple of Fold
        For each labelling, the folds that compute it.
    function : callable
        Takes these labellings.
    """

    folds: tuple[tuple[Fold, ...], ...]
    function: Callable[..., Any]

    def run(self, store: PartitionStore, partitions: Partitions) -> list[tuple[int, Any]]:
        results = []
        for blocks in (partition.blocks for partition in partitions):
            labellings = (compute_labels(store.spec, blocks, folds) for folds in self.folds)
            results.append((blocks.first_row, self.function(*labellings)))
        return results


# Labels (m,), and which points are trimmed, or None.
Labelling = tuple[Tensor, Tensor | None]


def compute_labels(spec: PartitionSpec, blocks: TensorBlocks, folds: tuple[Fold, ...]) -> Labelling:
    """Return the labels of some rows after some folds: they do not depend on the other rows."""
    with spec.make_engine(1).open(blocks) as session:
        for fold in folds:
            session.fold(fold)
        return session.labels(), session.trimmed()


@dataclass(frozen=True, kw_only=True)
class WeightsRequest(Request):
    """Return the weights of each partition, with its first row."""

    def run(self, store: PartitionStore, partitions: Partitions) -> list[tuple[int, Tensor]]:
        blocks = [partition.blocks for partition in partitions]
        return [(b.first_row, b.sample_weight) for b in blocks if b.sample_weight is not None]


@dataclass(frozen=True, kw_only=True)
class CloseRequest(Request):
    """Free the state of the points; the points stay."""

    next_version: int | None = 0

    def run(self, store: PartitionStore, partitions: Partitions) -> None:
        for partition in partitions:
            partition.close()
