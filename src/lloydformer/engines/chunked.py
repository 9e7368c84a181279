"""The chunked engine: folds on torch, on any device, one leaf block at a time.

Nothing of size n x k is stored. Each leaf is mapped by one thread with torch held to one thread,
a fixed number of neighbouring leaves are merged by the thread that mapped them, and the rest is
merged in row order: the number of threads does not change a bit.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

import torch

from lloydformer.data.blocks import Blocks, ranges
from lloydformer.engines.contract import State
from lloydformer.plans.contract import Block, Fold, Run

Leaves = list[tuple[int, int]]

_LEAVES = 8
"""Neighbouring leaves that are merged before anything else is."""


class Chunked:
    """Runs folds over blocks of points with a number of threads (torch's own by default)."""

    name = "chunked"

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @contextmanager
    def over(self, data: Blocks, state: State) -> Iterator[Run]:
        """A function that runs folds over these data, while threads for it are up."""
        before = torch.get_num_threads()
        n_threads = self.n_threads or before
        groups = _groups(data)
        if data.device.type != "cpu" or n_threads == 1 or len(groups) == 1:
            n_threads = 1
        torch.set_num_threads(1)
        try:
            with ThreadPoolExecutor(n_threads) as pool, ThreadPoolExecutor(1) as reader:
                asking = (
                    partial(_asking, data, groups, reader) if data.mapped else partial(iter, groups)
                )
                yield partial(
                    _fold, data, state, asking, pool if n_threads > 1 else None, n_threads
                )
        finally:
            torch.set_num_threads(before)


def _groups(data: Blocks) -> list[Leaves]:
    leaves = list(ranges(data))
    return [leaves[i : i + _LEAVES] for i in range(0, len(leaves), _LEAVES)]


def _fold(
    data: Blocks,
    state: State,
    asking: Callable[[], Iterator[Leaves]],
    pool: ThreadPoolExecutor | None,
    n_threads: int,
    fold: Fold,
) -> Any:
    work, groups = partial(_map_group, data, state, fold), asking()
    summaries = map(work, groups) if pool is None else _ahead(pool, work, groups, 2 * n_threads)
    return reduce(fold.merge, summaries)


def _asking(data: Blocks, groups: list[Leaves], reader: ThreadPoolExecutor) -> Iterator[Leaves]:
    """The groups, while a thread has the one after the next brought into memory."""
    for number, group in enumerate(groups):
        for later in groups[number + 2 : number + 3]:
            reader.submit(data.expect, later[0][0], later[-1][1])
        yield group


def _map_group(data: Blocks, state: State, fold: Fold, leaves: Leaves) -> Any:
    return reduce(fold.merge, (fold.map(_block(data, state, *leaf)) for leaf in leaves))


def _block(data: Blocks, state: State, start: int, stop: int) -> Block:
    return Block(
        start, partial(data.read, start, stop), data.weights(start, stop),
        state.labels[start:stop], state.before[start:stop], state.distances[start:stop],
    )  # fmt: skip


def _ahead(pool: ThreadPoolExecutor, work: Any, groups: Iterable[Any], most: int) -> Iterator[Any]:
    """Results in order, with at most so many of them waiting."""
    waiting: deque[Future[Any]] = deque()
    for group in groups:
        waiting.append(pool.submit(work, group))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
