"""Partitions: where rows are cut, how a partition is opened, and those that one process holds."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.engines.chunked import Chunked, ChunkedSession, DrawnBy
from lloydformer.engines.draws import RowMasses, leave_out, locate_rows, update_leaf_masses
from lloydformer.engines.native.engine import Native
from lloydformer.engines.native.folds import FOLDS, SUM_CHANGES, KernelFold
from lloydformer.engines.partitioned.tree_nodes import Node, split_into_nodes
from lloydformer.engines.thread_pool import single_core_pool
from lloydformer.numerics.tree import tree_levels
from lloydformer.plans.assign import NearestSums
from lloydformer.plans.session import Fold

# Nodes for each thread, if there are enough leaves: with one node per thread the others would wait
# for the slowest. Chosen by hand.
_NODES_PER_THREAD = 4
# All stores of this process share one pool for each number of threads: a worker makes a store for
# every request, and to start threads takes longer than a small fold.
_shared_pool = cache(single_core_pool)


class SourceRows(NamedTuple):
    """Rows [start, stop) of a source: a chunk of a Dask collection, or the shard of a rank."""

    source: int
    start: int
    stop: int


@dataclass(frozen=True)
class PartitionRange:
    """Global rows [start, stop) of a partition, and the sources that they come from.

    Both ends are multiples of the leaf, but for the end of the data.
    """

    start: int
    stop: int
    sources: tuple[SourceRows, ...]

    @property
    def n_rows(self) -> int:
        return self.stop - self.start

    def cut(self, start: int, stop: int) -> "PartitionRange":
        """Return the rows [start, stop) of it."""
        sources, offset = list[SourceRows](), self.start
        for source, first, last in self.sources:
            low, high = max(start, offset), min(stop, offset + last - first)
            if low < high:
                sources.append(SourceRows(source, first + low - offset, first + high - offset))
            offset += last - first
        return PartitionRange(start, stop, tuple(sources))


def cut_partitions(
    lengths: Sequence[int], leaf: int, fewest: int = 1, most: int | None = None
) -> list[PartitionRange]:
    """Cut data whose sources have these lengths, at leaves, near the ends of the sources.

    A partition ends at the leaf next to the end of a source, so at most half a leaf of rows goes
    to a neighbour. Sources are put together until a partition has `fewest` rows, as far as there
    are any; a source of more than `most` rows is cut into equal parts.
    """
    n_rows, ends, offset = sum(lengths), [0], 0
    for length in lengths:
        count = max(1, -(-length // max(most or n_rows, 1)))
        for i in range(count):
            end = (offset + length * (i + 1) // count + leaf // 2) // leaf * leaf
            if end - ends[-1] >= max(fewest, 1) and n_rows - end >= max(fewest, leaf):
                ends.append(end)
        offset += length
    if n_rows > 0:
        ends.append(n_rows)
    sources = (SourceRows(source, 0, length) for source, length in enumerate(lengths))
    whole = PartitionRange(0, n_rows, tuple(sources))
    return [whole.cut(start, stop) for start, stop in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class PartitionRows:
    """The rows of a partition, as they are sent.

    Attributes
    ----------
    first_row : int
        The number of the first one among all rows; a multiple of the leaf.
    points : ndarray or Tensor of shape (m, d)
        In the units of the user and the precision of the layout, row by row.
    weights : ndarray or Tensor of shape (m,) or None
        In units of `Layout.weight_unit`, float64.
    """

    first_row: int
    points: np.ndarray | Tensor
    weights: np.ndarray | Tensor | None = None


@dataclass(frozen=True)
class PartitionSpec:
    """All that is needed to open a partition as a part of the whole data; small, can be sent.

    Attributes
    ----------
    layout : Layout
        Of all rows.
    ends : Tensor of shape (2, d)
        The smallest and the largest value of each column of all rows, in the units of the user.
    directions : bool
        Each row is divided by its norm when it is read.
    engine : {"native", "chunked"}
        What opens a partition.
    single : bool
        All rows are one partition, and so few that an engine call solves the whole problem: the
        session of that partition runs tasks as well.
    """

    layout: Layout
    ends: Tensor
    directions: bool
    engine: str
    single: bool = False

    @classmethod
    def for_blocks(cls, blocks: TensorBlocks, engine: str, *, single: bool) -> "PartitionSpec":
        """Return the spec of the partitions of these blocks."""
        return cls(blocks.layout, blocks.ends, blocks.directions, engine, single)

    def open_rows(self, rows: PartitionRows) -> TensorBlocks:
        """Return the rows of a partition as blocks."""
        layout, weights = self.layout, rows.weights
        return TensorBlocks(
            torch.as_tensor(rows.points),
            None if weights is None else torch.as_tensor(weights),
            layout.leaf,
            layout.origin,
            self.directions,
            layout.scaling,
            part=layout.part,
            known_ends=self.ends,
            weight_unit=layout.weight_unit,
            first_row=rows.first_row,
            is_bent=True,  # rows are sent after the curves of a scaling
        )

    def make_engine(self, n_threads: int) -> Native | Chunked:
        """Return the engine that opens a partition."""
        return Native(n_threads) if self.engine == "native" else Chunked(n_threads)

    def kernel(self, fold: Fold) -> KernelFold | None:
        """Return the kernel that runs a fold over a partition; None: the plain fold runs."""
        if self.engine != "native":
            return None
        # Partitions report how labels have changed; the session keeps the sums (`RunningSums`).
        return SUM_CHANGES if type(fold) is NearestSums else FOLDS.get(type(fold))


class OpenNode:
    """The rows of one node of the tree, opened by an ordinary session."""

    def __init__(self, node: Node, session: ChunkedSession) -> None:
        self.node, self.session = node, session

    def mass(self, by: DrawnBy, drawn: Sequence[int]) -> float:
        """Return the mass of its rows for a draw, without the rows that are drawn already."""
        return self._mass_tree(by, drawn)[0][-1].item()

    def locate_rows(
        self, by: DrawnBy, drawn: Sequence[int], targets: Sequence[float]
    ) -> tuple[list[int], Tensor]:
        """Return the global rows where the running mass exceeds these targets, and the points."""
        levels, row_masses = self._mass_tree(by, drawn)
        wanted = torch.tensor(targets, dtype=torch.float64)
        rows = locate_rows(self.session.layout, levels, row_masses, wanted)
        return (rows + self.session.blocks.first_row).tolist(), self.session.gather(rows)

    def _mass_tree(self, by: DrawnBy, drawn: Sequence[int]) -> tuple[list[Tensor], RowMasses]:
        """Return the tree of the leaves' masses, and the masses of rows, without drawn rows."""
        layout, first = self.session.layout, self.session.blocks.first_row
        own = [row - first for row in drawn if first <= row < first + layout.n_rows]
        row_masses = leave_out(own, partial(self.session.row_masses, by))
        leaf_masses = self.session.leaf_masses(by).clone()
        update_leaf_masses(layout, leaf_masses, row_masses, own)
        return tree_levels(leaf_masses), row_masses


class OpenPartition:
    """Consecutive rows, opened as the complete nodes that they are made of when first used.

    Parameters
    ----------
    spec : PartitionSpec
        How its rows are opened.
    blocks : TensorBlocks
        The rows.
    n_threads : int
        Threads of the session of each node.
    max_leaves : int or None
        Leaves of a node at most, a power of two; None: any number.

    Attributes
    ----------
    version : int
        The number of the last request that has changed the state of its rows; 0: none has.
    lock : RLock
        Held while a request is handled.
    """

    def __init__(
        self,
        spec: PartitionSpec,
        blocks: TensorBlocks,
        n_threads: int,
        max_leaves: int | None = None,
    ) -> None:
        self.spec, self.blocks, self.version, self.lock = spec, blocks, 0, RLock()
        self._n_threads, self._max_leaves = n_threads, max_leaves
        self._resources, self._nodes = ExitStack(), list[OpenNode]()

    @property
    def nodes(self) -> list[OpenNode]:
        if not self._nodes:  # opened on first use: to gather rows, none are needed
            layout, first = self.spec.layout, self.blocks.first_row
            leaves = first // layout.leaf, -(-(first + self.blocks.n_rows) // layout.leaf)
            engine = self.spec.make_engine(self._n_threads)
            for node in split_into_nodes(*leaves, layout.n_leaves, self._max_leaves):
                start = node.first_leaf * layout.leaf - first
                stop = min(node.stop_leaf(layout.n_leaves) * layout.leaf, layout.n_rows) - first
                opening = engine.open(self.blocks.slice_rows(start, stop))
                self._nodes.append(OpenNode(node, self._resources.enter_context(opening)))
        return self._nodes

    def fork(self) -> "OpenPartition":
        """Return the same rows, with a state of their own."""
        return OpenPartition(self.spec, self.blocks, self._n_threads, self._max_leaves)

    def close(self) -> None:
        """Forget the state of the rows."""
        self._resources.close()
        self._nodes, self.version = [], 0


@dataclass(frozen=True)
class Response:
    """The response of a process to a request.

    Attributes
    ----------
    result : object
        Of the partitions whose state is there; None if there are none.
    lost : tuple of int
        The other partitions that the request is for: their state must be computed again.
    """

    result: Any
    lost: tuple[int, ...] = ()


class PartitionStore:
    """The partitions that one process holds, by their numbers, and the threads that work on them.

    Parameters
    ----------
    spec : PartitionSpec
        How partitions are opened.
    n_threads : int
        Threads that work on them.
    n_rows : int
        Rows that they have in all, about: with several threads, nodes are so small that every
        thread has some.

    Attributes
    ----------
    map : callable
        As the built-in `map`, by all threads.
    """

    def __init__(self, spec: PartitionSpec, n_threads: int, n_rows: int) -> None:
        self.spec, self.partitions = spec, dict[int, OpenPartition]()
        leaves = -(-n_rows // spec.layout.leaf)
        # Few leaves: one node after the other, each by the threads of its kernels. Many: nodes are
        # cut so small that there are enough for all threads, and each is the work of one thread.
        self._max_leaves: int | None = None
        self._threads_of_node = n_threads
        self.map: Callable[..., Iterable[Any]] = map
        if n_threads > 1 and leaves >= _NODES_PER_THREAD * n_threads and not spec.single:
            self._max_leaves = 1 << (leaves // (_NODES_PER_THREAD * n_threads)).bit_length() - 1
            self._threads_of_node, self.map = 1, _shared_pool(n_threads).map

    def fork(self) -> "PartitionStore":
        """Return a store of the same rows, with a state of their own."""
        other = copy(self)
        other.partitions = {number: part.fork() for number, part in self.partitions.items()}
        return other

    def open(self, rows: PartitionRows) -> OpenPartition:
        """Return a partition, to be entered in `partitions`."""
        blocks = self.spec.open_rows(rows)
        return OpenPartition(self.spec, blocks, self._threads_of_node, self._max_leaves)

    def handle(self, request: Any) -> Response:
        """Run a request on the partitions that it is for and whose state has its version."""
        # Sorted: two threads that lock the same partitions never wait for each other.
        chosen = {n: p for n, p in sorted(self.partitions.items()) if request.is_for(n)}
        with ExitStack() as locks:
            for partition in chosen.values():
                locks.enter_context(partition.lock)
            ready = [n for n in chosen if request.version in (None, chosen[n].version)]
            result = request.run(self, [chosen[n] for n in ready]) if ready else None
            if request.next_version is not None:
                for n in ready:
                    chosen[n].version = request.next_version
        return Response(result, tuple(n for n in chosen if n not in ready))

    def close(self) -> None:
        """Forget all partitions and their state."""
        for partition in self.partitions.values():
            partition.close()
        self.partitions.clear()
