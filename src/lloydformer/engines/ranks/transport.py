"""A transport between ranks: everyone answers for its own parts, and gets the answers of all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.parts import Holder, LabelsOnParts, Opening, PartRows
from lloydformer.engines.parts.holder import PartsAnswer
from lloydformer.engines.parts.labels import final_labels
from lloydformer.engines.parts.questions import labelling
from lloydformer.engines.ranks.group import MessageKind, Ranks
from lloydformer.engines.ranks.moves import rows_of_parts, values_of_shard
from lloydformer.engines.ranks.places import Place
from lloydformer.engines.thread_pool import allowed_threads


@dataclass(frozen=True)
class AllGather:
    """The parts of all ranks; all of them ask the same questions in the same order.

    Attributes
    ----------
    ranks : Ranks
        Who holds parts.
    holder : Holder
        The parts of this rank.
    where : list of Place
        All parts, and who holds them.
    """

    ranks: Ranks
    holder: Holder
    where: Sequence[Place]

    def ask(self, question: Any) -> list[PartsAnswer]:
        """One all-gather. An error of a holder is raised on all ranks."""
        fold = getattr(question, "fold", None)
        name = type(question if fold is None else fold).__name__
        kind = MessageKind.of(name, question) if self.ranks.size > 1 else MessageKind(name)
        answers = self.ranks.gather_results(lambda: self.holder.answer(question), kind)
        return [answer for answer in answers if answer.found is not None or answer.lost]

    def fork(self) -> "AllGather":
        """A way to the same rows, with a state of their own."""
        return replace(self, holder=self.holder.fork())

    def own_labels(self, labels: LabelsOnParts) -> Tensor:
        """The labels of the rows that this rank was given; -1 for points that are trimmed."""
        opening = self.holder.opening
        held = dict[int, Tensor]()

        def label() -> None:
            for number, part in self.holder.parts.items():
                found = labelling(opening, part.blocks, labels.folds)
                held[number] = final_labels(found, labels.numbers)

        self.ranks.gather_results(label, MessageKind("labels"))
        none = torch.empty(0, dtype=torch.int32)
        return values_of_shard(held, none, self.where, self.ranks)


def hold(
    points: Tensor, weights: Tensor | None, opening: Opening, where: Sequence[Place], ranks: Ranks
) -> AllGather:
    """Move rows to the ranks that hold their parts.

    points, weights: the shard of this rank, (m, d) and (m,). Every rank uses as many threads as
    both torch and OpenMP allow.
    """
    opening = replace(opening, single=len(where) == 1)
    parts = rows_of_parts(points, where, ranks)
    weighed = None if weights is None else rows_of_parts(weights, where, ranks)
    holder = Holder(opening, allowed_threads(), sum(map(len, parts.values())))
    for number, rows in parts.items():
        weight = None if weighed is None else weighed[number]
        holder.add(number, PartRows(where[number].cut.start, rows, weight))
    return AllGather(ranks, holder, where)
