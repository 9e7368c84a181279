"""The chunked engine: folds on torch, on any device, a part of a leaf at a time.

Nothing of size n x k is stored. Each part is mapped by one thread with torch on one core, and
leaves are merged along one binary tree: the number of threads does not change a bit.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial, reduce
from typing import Any, Literal

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, leaf_ranges
from lloydformer.data.layout import Layout
from lloydformer.engines.draws import draw_independently, draw_successively
from lloydformer.engines.state import PointState
from lloydformer.engines.thread_pool import single_core_pool, torch_threads
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.tree import merge_tree
from lloydformer.plans.session import Fold, PointBlock, Session, Task

Leaves = list[tuple[int, int]]
DrawnBy = Literal["distance", "weight"]

# A thread maps and merges up to 8 neighbouring leaves at a time, which takes fewer messages between
# threads; fewer leaves if there are fewer than 16 groups, so that no thread waits for the last one.
_LEAVES_PER_GROUP, _FEWEST_GROUPS = 8, 16


class Chunked:
    """Runs folds with a number of threads (torch's own number by default)."""

    name = "chunked"

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator["ChunkedSession"]:
        with ExitStack() as resources:
            yield ChunkedSession(blocks, self.n_threads or torch_threads(), resources)


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

        def map_leaf(start: int, stop: int) -> Any:
            # From left to right: the size of a part depends on k and d alone, as that of a leaf.
            part = self.layout.part
            parts = ((i, min(i + part, stop)) for i in range(start, stop, part))
            return reduce(fold.merge, (fold.map(self._block(*rows)) for rows in parts))

        def map_group(leaves: Leaves) -> Any:
            return merge_tree(fold.merge, (map_leaf(*leaf) for leaf in leaves))

        with self._forget_on_error():
            if self.layout.device.type != "cpu":  # a GPU has its own threads
                return merge_tree(fold.merge, map(map_group, self._groups))
            # Twice as many groups as threads: each has the next one when it has finished one.
            groups, most = self._prefetch_groups(), 2 * self._n_threads
            with closing(_map_in_order(self._pool, map_group, groups, most)) as summaries:
                return merge_tree(fold.merge, summaries)

    # The fold without kernels, also in sessions whose `fold` has some.
    plain_fold = fold

    def run(self, task: Task) -> Any | None:
        return None

    def gather(self, rows: Tensor) -> Tensor:
        return self.blocks.take(rows)

    def draw_by_distance(self, fractions: Tensor) -> Tensor:
        fractions, masses = fractions.to(self.layout.device), self.leaf_masses("distance")
        row_masses = partial(self.row_masses, "distance")
        return draw_independently(self.layout, masses, row_masses, fractions)

    def draw_by_weight(self, fractions: Tensor) -> Tensor:
        fractions, masses = fractions.to(self.layout.device), self.leaf_masses("weight")
        return draw_successively(self.layout, masses, partial(self.row_masses, "weight"), fractions)

    def labels(self) -> Tensor:
        return self.state.lend_labels()

    def trimmed(self) -> Tensor | None:
        return self.state.copy("trimmed")

    def forget(self) -> None:
        self.state.forget()

    def row_masses(self, by: DrawnBy, start: int, stop: int) -> Tensor:
        """Return weight times squared distance of the rows [start, stop), or weight alone."""
        weights = self.blocks.weights(start, stop)
        if by == "distance":
            distances = self.state.column("distances")[start:stop].double()
            return distances if weights is None else distances * weights
        if weights is None:
            return torch.ones(stop - start, dtype=torch.float64, device=self.layout.device)
        return weights.double()

    def leaf_masses(self, by: DrawnBy) -> Tensor:
        """Return the sums of these masses in each leaf."""
        leaves = leaf_ranges(self.layout)
        return torch.stack([self.row_masses(by, *leaf).sum() for leaf in leaves])

    @contextmanager
    def _forget_on_error(self) -> Iterator[None]:
        """Forget the labels of the last iteration after an error: some of them are new ones."""
        try:
            yield
        except BaseException:
            self.forget()
            raise

    @cached_property
    def _pool(self) -> Executor:
        return self._resources.enter_context(
            single_core_pool(min(self._n_threads, len(self._groups)))
        )

    @cached_property
    def _groups(self) -> list[Leaves]:
        """Aligned subtrees of the tree of sums; sums do not depend on their size."""
        leaves, size = list(leaf_ranges(self.layout)), _LEAVES_PER_GROUP
        while size > 1 and len(leaves) < size * _FEWEST_GROUPS:
            size //= 2
        return [leaves[i : i + size] for i in range(0, len(leaves), size)]

    def _prefetch_groups(self) -> Iterator[Leaves]:
        """Yield the groups, while a thread prefetches the one after the next of mapped data."""
        if not self.blocks.mapped:
            yield from self._groups
            return
        with ThreadPoolExecutor(1) as reader:
            for number, group in enumerate(self._groups):
                # Not the next one: a thread reads it already.
                for later in self._groups[number + 2 : number + 3]:
                    reader.submit(self.blocks.prefetch, later[0][0], later[-1][1])
                yield group

    def _block(self, start: int, stop: int) -> PointBlock:
        def column(name: str) -> Tensor:
            return self.state.column(name)[start:stop]

        read, first = partial(self.blocks.read, start, stop), self.blocks.first_row + start
        return PointBlock(first, stop - start, read, self.blocks.weights(start, stop), column)


def _map_in_order(
    pool: Executor, function: Any, groups: Iterable[Any], most: int
) -> Generator[Any, None, None]:
    """Yield results in the order of the groups, with at most `most` of them waiting.

    `Executor.map` would submit all groups at once, and keep the summaries of all. After an error no
    thread works on a group any more.
    """
    waiting: deque[Future[Any]] = deque()
    try:
        for group in groups:
            waiting.append(pool.submit(function, group))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])
