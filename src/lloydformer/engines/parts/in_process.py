"""Parts in this process: the simplest transport."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.parts.cuts import Cut
from lloydformer.engines.parts.holder import Holder, PartsAnswer
from lloydformer.engines.parts.opening import Opening, PartRows
from lloydformer.engines.parts.session import PartsSession


class InProcess:
    """Holders in this process; each answers in turn."""

    def __init__(self, holders: Sequence[Holder]) -> None:
        self.holders = holders

    def ask(self, question: Any) -> list[PartsAnswer]:
        return [holder.answer(question) for holder in self.holders]

    def fork(self) -> "InProcess":
        return InProcess([holder.fork() for holder in self.holders])


@contextmanager
def open_parts(
    blocks: TensorBlocks, parts: Sequence[Cut], n_holders: int, n_threads: int, engine: str
) -> Iterator[PartsSession]:
    """A session over blocks in memory that are cut into parts, which holders take in turn."""
    opening = Opening.of(blocks, engine, single=len(parts) == 1)
    holders = [Holder(opening, n_threads, blocks.n_rows // n_holders) for _ in range(n_holders)]
    for number, cut in enumerate(parts):
        rows = slice(cut.start, cut.stop)
        weights = None if blocks.sample_weight is None else blocks.sample_weight[rows]
        holders[number % n_holders].add(number, PartRows(cut.start, blocks.points[rows], weights))
    session = PartsSession(opening, InProcess(holders))
    try:
        with session.resources:
            yield session
    finally:
        for holder in holders:
            holder.close()
