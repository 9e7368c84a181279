"""The parts that one process holds: each opened node by node, with threads that work on them."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import cache
from threading import RLock
from typing import Any, TypeVar

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import ChunkedSession, DrawnBy
from lloydformer.engines.draws import rows_at, weigh_leaf_again, without
from lloydformer.engines.native.engine import NativeSession
from lloydformer.engines.parts.nodes import Node, nodes_of
from lloydformer.engines.parts.opening import Opening, PartRows
from lloydformer.engines.thread_pool import single_core_pool
from lloydformer.numerics.tree import tree_levels
from lloydformer.plans.session import Fold

A = TypeVar("A")
B = TypeVar("B")

_AT_ONCE = 4
"""Nodes for each thread, if there are enough leaves, so that threads do not wait for each other."""


class OpenNode:
    """The rows of one node, opened by an ordinary session."""

    def __init__(self, node: Node, session: ChunkedSession) -> None:
        self.node, self.session = node, session
        self.first_row = session.blocks.first_row

    @property
    def stop_row(self) -> int:
        return self.first_row + self.session.layout.n_rows

    def fold(self, opening: Opening, fold: Fold, plain: bool) -> tuple[Any, bool]:
        """The raw summary by a kernel, or the summary of the plain fold; and is it plain?"""
        kernel = None if plain else opening.kernel(fold)
        if kernel is not None and isinstance(self.session, NativeSession):
            raw = self.session.raw(kernel, fold)
            if raw is not None:
                return raw, False
        if isinstance(self.session, NativeSession):
            return self.session.plain_fold(fold), True
        return self.session.fold(fold), True

    def mass(self, by: DrawnBy, drawn: list[int]) -> float:
        """What its rows are drawn by, without rows that are drawn already."""
        return tree_levels(self._leaf_masses(by, drawn))[-1].item()

    def rows_at(
        self, by: DrawnBy, drawn: list[int], targets: list[float]
    ) -> tuple[list[int], Tensor]:
        """Global rows where the running mass within the node exceeds these targets; the points."""
        levels = tree_levels(self._leaf_masses(by, drawn))
        left = without(self._own(drawn), self.session.row_masses(by))
        wanted = torch.tensor(targets, dtype=torch.float64)
        found = rows_at(self.session.layout, levels, left, wanted)
        return (found + self.first_row).tolist(), self.session.gather(found)

    def _leaf_masses(self, by: DrawnBy, drawn: list[int]) -> Tensor:
        masses, own = self.session.leaf_masses(by).clone(), self._own(drawn)
        left = without(own, self.session.row_masses(by))
        for row in own:
            weigh_leaf_again(self.session.layout, masses, left, row)
        return masses

    def _own(self, rows: list[int]) -> list[int]:
        """Those of some global rows that are here, counted from the first one here."""
        return [row - self.first_row for row in rows if self.first_row <= row < self.stop_row]


class OpenPart:
    """Consecutive rows, opened as the complete nodes that they are made of when first asked.

    Attributes
    ----------
    version : int
        The number of the last question that has changed the state of its rows; 0: none has.
    lock : RLock
        Held while a question is answered.
    """

    def __init__(
        self, opening: Opening, blocks: TensorBlocks, n_threads: int, most: int | None = None
    ) -> None:
        self.opening, self.blocks, self.version, self.lock = opening, blocks, 0, RLock()
        self._n_threads, self._most = n_threads, most
        self._resources, self._nodes = ExitStack(), list[OpenNode]()

    @property
    def nodes(self) -> list[OpenNode]:
        if not self._nodes:
            self._nodes = self._opened()
        return self._nodes

    def fork(self) -> "OpenPart":
        """The same rows, with a state of their own."""
        return OpenPart(self.opening, self.blocks, self._n_threads, self._most)

    def close(self) -> None:
        """Forget the state of the rows."""
        self._resources.close()
        self._nodes, self.version = [], 0

    def _opened(self) -> list[OpenNode]:
        layout, first = self.opening.layout, self.blocks.first_row
        leaves = first // layout.leaf, -(-(first + self.blocks.n_rows) // layout.leaf)
        engine = self.opening.engine_with(self._n_threads)
        return [
            OpenNode(node, self._resources.enter_context(engine.open(self._rows_of(node))))
            for node in nodes_of(*leaves, layout.n_leaves, self._most)
        ]

    def _rows_of(self, node: Node) -> TensorBlocks:
        layout, first = self.opening.layout, self.blocks.first_row
        start = node.first_leaf * layout.leaf
        stop = min(node.stop_leaf(layout.n_leaves) * layout.leaf, layout.n_rows)
        return self.blocks.between(start - first, stop - first)


@dataclass(frozen=True)
class PartsAnswer:
    """What a holder answers.

    Attributes
    ----------
    found : object
        What the question finds in the parts whose state is there; None: nothing.
    lost : tuple of int
        The other parts that the question is for.
    """

    found: Any
    lost: tuple[int, ...] = ()


class Holder:
    """The parts that one process holds, by their numbers, and the threads that work on them.

    Parameters
    ----------
    opening : Opening
        How parts are opened.
    n_threads : int
        Threads that work on them.
    n_rows : int
        Rows that the parts of this holder have in all, about: with several threads, nodes are so
        small that every thread has some.
    """

    def __init__(self, opening: Opening, n_threads: int, n_rows: int) -> None:
        self.opening, self.parts = opening, dict[int, OpenPart]()
        leaves = -(-n_rows // opening.layout.leaf)
        self._most: int | None = None
        self._threads_of_node, self._pool = n_threads, None
        if n_threads > 1 and leaves >= _AT_ONCE * n_threads and not opening.single:
            self._most = 1 << (leaves // (_AT_ONCE * n_threads)).bit_length() - 1
            self._threads_of_node, self._pool = 1, _pool(n_threads)

    def fork(self) -> "Holder":
        """A holder of the same rows, with a state of their own."""
        other = copy(self)
        other.parts = {number: part.fork() for number, part in self.parts.items()}
        return other

    def opened(self, rows: PartRows) -> OpenPart:
        """A part, to be put into `parts`."""
        blocks = self.opening.blocks(rows)
        return OpenPart(self.opening, blocks, self._threads_of_node, self._most)

    def add(self, number: int, rows: PartRows) -> None:
        """Hold a part."""
        self.parts[number] = self.opened(rows)

    def answer(self, question: Any) -> PartsAnswer:
        """Put a question to the parts that it is for and whose state is that of its version."""
        asked = {n: part for n, part in sorted(self.parts.items()) if question.is_for(n)}
        with ExitStack() as locks:
            for part in asked.values():
                locks.enter_context(part.lock)
            there = [n for n in asked if question.version in (None, asked[n].version)]
            found = question.run(self, [asked[n] for n in there]) if there else None
            for n in there:
                asked[n].version = question.after(asked[n].version)
        return PartsAnswer(found, tuple(n for n in asked if n not in there))

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """The results of a function, computed by all threads."""
        if self._pool is None:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def close(self) -> None:
        """Forget the state of all rows, and the parts."""
        for part in self.parts.values():
            part.close()
        self.parts.clear()


@cache
def _pool(n_threads: int) -> Executor:
    """Threads that all holders of this process share."""
    return single_core_pool(n_threads)
