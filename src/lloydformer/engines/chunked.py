"""The chunked engine: folds on torch, on any device, a part of a leaf at a time.

Nothing of size n x k is stored. Each part is mapped by one thread with torch on one core, and
leaves are merged along one binary tree: the number of threads does not change a bit.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property, partial, reduce
from typing import Any, Literal

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, leaf_ranges
from lloydformer.data.layout import Layout
from lloydformer.engines.draws import RowMasses, draw_independently, draw_successively
from lloydformer.engines.state import PointState
from lloydformer.engines.thread_pool import single_core_pool
from lloydformer.numerics.tree import merge_tree
from lloydformer.plans.session import Fold, PointBlock, Session, Task

Leaves = list[tuple[int, int]]
DrawnBy = Literal["distance", "weight"]

_GROUP, _GROUPS = 8, 16
"""A thread maps and merges up to 8 neighbouring leaves, fewer if there are fewer than 16 groups."""


class Chunked:
    """Runs folds with a number of threads (torch's own number by default)."""

    name = "chunked"

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator["ChunkedSession"]:
        with ExitStack() as resources:
            yield ChunkedSession(blocks, self.n_threads or torch.get_num_threads(), resources)


class ChunkedSession(Session):
    """Blocks of points in this process, or on a device that torch knows."""

    def __init__(self, blocks: Blocks, n_threads: int, resources: ExitStack) -> None:
        self.blocks, self.state = blocks, PointState(blocks.layout)
        self._n_threads, self._resources = n_threads, resources

    @property
    def layout(self) -> Layout:
        return self.blocks.layout

    def fold(self, fold: Fold) -> Any:
        self.state.reclaim()
        with self._all_or_forgotten(), closing(self._summaries(fold)) as summaries:
            return merge_tree(fold.merge, summaries)

    def run(self, task: Task) -> Any | None:
        return None

    def gather(self, rows: Tensor) -> Tensor:
        return self.blocks.take(rows)

    def draw_by_distance(self, fractions: Tensor) -> Tensor:
        fractions, masses = fractions.to(self.layout.device), self.leaf_masses("distance")
        return draw_independently(self.layout, masses, self._mass, fractions)

    def draw_by_weight(self, fractions: Tensor) -> Tensor:
        fractions, masses = fractions.to(self.layout.device), self.leaf_masses("weight")
        return draw_successively(self.layout, masses, self._weight, fractions)

    def labels(self) -> Tensor:
        return self.state.lend_labels()

    def trimmed(self) -> Tensor | None:
        return self.state.copy_of("trimmed")

    def forget(self) -> None:
        self.state.forget()

    @contextmanager
    def _all_or_forgotten(self) -> Iterator[None]:
        """Forget the labels of the last iteration after an error: some of them are new ones."""
        try:
            yield
        except BaseException:
            self.forget()
            raise

    def _weight(self, start: int, stop: int) -> Tensor:
        weights = self.blocks.weights(start, stop)
        if weights is None:
            return torch.ones(stop - start, dtype=torch.float64, device=self.layout.device)
        return weights.double()

    def _mass(self, start: int, stop: int) -> Tensor:
        distances = self.state.column("distances")[start:stop].double()
        weights = self.blocks.weights(start, stop)
        return distances if weights is None else distances * weights

    def row_masses(self, by: DrawnBy) -> RowMasses:
        """What rows are drawn by: weight times squared distance, or weight alone."""
        return self._mass if by == "distance" else self._weight

    def leaf_masses(self, by: DrawnBy) -> Tensor:
        """The sums of these masses in each leaf."""
        of = self.row_masses(by)
        return torch.stack([of(*leaf).sum() for leaf in leaf_ranges(self.layout)])

    @cached_property
    def _pool(self) -> Executor:
        return self._resources.enter_context(
            single_core_pool(min(self._n_threads, len(self._groups)))
        )

    @cached_property
    def _groups(self) -> list[Leaves]:
        """Aligned subtrees of the tree of sums; their size changes no bit."""
        leaves, size = list(leaf_ranges(self.layout)), _GROUP
        while size > 1 and len(leaves) < size * _GROUPS:
            size //= 2
        return [leaves[i : i + size] for i in range(0, len(leaves), size)]

    def _prefetched(self) -> Iterator[Leaves]:
        """The groups, while a thread prefetches the one after the next of mapped data."""
        if not self.blocks.mapped:
            yield from self._groups
            return
        for number, group in enumerate(self._groups):
            for later in self._groups[number + 2 : number + 3]:
                self._reader.submit(self.blocks.prefetch, later[0][0], later[-1][1])
            yield group

    @cached_property
    def _reader(self) -> ThreadPoolExecutor:
        return self._resources.enter_context(ThreadPoolExecutor(1))

    def _summaries(self, fold: Fold) -> Generator[Any, None, None]:
        """The summary of each group, in their order."""
        work = partial(self._map_group, fold)
        if self.layout.device.type == "cpu":
            yield from _in_order(self._pool, work, self._prefetched(), 2 * self._n_threads)
        else:
            yield from map(work, self._groups)

    def _map_group(self, fold: Fold, leaves: Leaves) -> Any:
        return merge_tree(fold.merge, (self._map_leaf(fold, *leaf) for leaf in leaves))

    def _map_leaf(self, fold: Fold, start: int, stop: int) -> Any:
        part = self.layout.part
        parts = ((i, min(i + part, stop)) for i in range(start, stop, part))
        return reduce(fold.merge, (fold.map(self._block(*rows)) for rows in parts))

    def _block(self, start: int, stop: int) -> PointBlock:
        def column(name: str) -> Tensor:
            return self.state.column(name)[start:stop]

        read, first = partial(self.blocks.read, start, stop), self.blocks.first_row + start
        return PointBlock(first, stop - start, read, self.blocks.weights(start, stop), column)


def _in_order(pool: Executor, work: Any, groups: Iterable[Any], most: int) -> Iterator[Any]:
    """Results in the order of the groups, with at most `most` of them waiting.

    After an error no thread works on a group any more.
    """
    waiting: deque[Future[Any]] = deque()
    try:
        for group in groups:
            waiting.append(pool.submit(work, group))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])
