"""The engine of ranks: every rank holds some parts, and all of them ask the same questions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.parts import Holder, LabelsOnParts, Opening, PartRows, PartsSession
from lloydformer.engines.parts.holder import PartsAnswer
from lloydformer.engines.parts.labels import final_labels
from lloydformer.engines.parts.questions import labelling
from lloydformer.engines.ranks.group import Ranks
from lloydformer.engines.ranks.moves import rows_of_parts, values_of_shard
from lloydformer.engines.ranks.places import Place, places
from lloydformer.engines.thread_pool import allowed_threads


@dataclass(frozen=True)
class ShardBlocks:
    """The rows of this rank, and what is known of the rows of all ranks.

    Attributes
    ----------
    points : Tensor of shape (m, d)
        The rows of this rank, in the units of the user.
    sample_weight : Tensor of shape (m,) or None
        In units of `layout.weight_unit`.
    opening : Opening
        How parts of the rows of all ranks are opened.
    lengths : tuple of int
        Number of rows of each rank.
    n_clusters : int
        Number of clusters that are looked for.
    n_weighted : int
        Number of rows of all ranks with a weight above 0.
    ranks : Ranks
        Who else has rows.
    """

    points: Tensor
    sample_weight: Tensor | None
    opening: Opening
    lengths: tuple[int, ...]
    n_clusters: int
    n_weighted: int
    ranks: Ranks

    @property
    def layout(self) -> Layout:
        """Of the rows of all ranks."""
        return self.opening.layout

    @cached_property
    def where(self) -> list[Place]:
        """The parts, and who holds them.

        A small problem is one part: one process would solve it in one call of a kernel.
        """
        layout = self.layout
        small = in_one_call(layout.n_rows, layout.n_features, self.n_clusters)
        return places(self.lengths, layout.leaf, single=small)


class AllGather:
    """A transport: every rank answers for its own parts, and gets the answers of all."""

    def __init__(self, ranks: Ranks, holder: Holder) -> None:
        self.ranks, self.holder = ranks, holder

    def ask(self, question: Any) -> list[PartsAnswer]:
        kind = type(question), type(getattr(question, "fold", None))
        return self.ranks.gather_results(lambda: self.holder.answer(question), kind)


class RanksSession(PartsSession):
    """The session of all rows, in each rank; it knows which rows this rank was given."""

    def __init__(self, blocks: ShardBlocks, opening: Opening, holder: Holder) -> None:
        super().__init__(opening, AllGather(blocks.ranks, holder))
        self._blocks, self._holder = blocks, holder

    def own_labels(self, labels: LabelsOnParts) -> Tensor:
        """The labels of the rows that this rank was given; -1 for points that are trimmed."""
        held = {
            number: final_labels(labelling(self._holder, part, labels.entries), labels.numbers)
            for number, part in self._holder.parts.items()
        }
        none = torch.empty(0, dtype=torch.int32)
        return values_of_shard(held, none, self._blocks.where, self._blocks.ranks)


class RanksEngine:
    """Opens shards: rows move to the rank that holds their leaf, then every rank opens its parts.

    n_threads: of each rank; by default as many as both torch and OpenMP are allowed.
    """

    name = "ranks"

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @contextmanager
    def open(self, blocks: ShardBlocks) -> Iterator[RanksSession]:
        where, ranks = blocks.where, blocks.ranks
        opening = replace(blocks.opening, single=len(where) == 1)
        points = rows_of_parts(blocks.points, where, ranks)
        weights = None
        if blocks.sample_weight is not None:
            weights = rows_of_parts(blocks.sample_weight, where, ranks)
        n_rows = sum(len(part) for part in points.values())
        holder = Holder(opening, self.n_threads or allowed_threads(), n_rows)
        try:
            for number, part in points.items():
                weighed = None if weights is None else weights[number]
                holder.add(number, PartRows(where[number].cut.start, part, weighed))
            yield RanksSession(blocks, opening, holder)
        finally:
            holder.close()
