"""Questions to the holders of parts: values that can be sent, with the work that answers them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import DrawnBy
from lloydformer.engines.native.engine import NativeSession
from lloydformer.engines.native.folds import label_sums
from lloydformer.engines.parts.holder import Holder, OpenNode, OpenPart
from lloydformer.engines.parts.nodes import Node, joined
from lloydformer.engines.parts.opening import Opening
from lloydformer.plans.seeding import NewSeed
from lloydformer.plans.session import Fold


@dataclass(frozen=True)
class PartsQuestion:
    """What every question has.

    Attributes
    ----------
    version : int or None
        The version that the state of a part must have; None: any.
    following : int or None
        The version of the state afterwards; None: the question does not change it.
    only : frozenset of int or None
        Numbers of the parts that it is for; None: all.
    """

    version: int | None = None
    following: int | None = None
    only: frozenset[int] | None = None

    def is_for(self, number: int) -> bool:
        return self.only is None or number in self.only

    def after(self, version: int) -> int:
        return version if self.following is None else self.following

    def run(self, holder: Holder, parts: list[OpenPart]) -> Any:
        """What is found in these parts."""
        raise NotImplementedError


def merge_of(opening: Opening, fold: Fold, plain: bool) -> Callable[[Any, Any], Any]:
    """How the summaries of nodes are merged."""
    kernel = None if plain else opening.kernel(fold)
    return fold.merge if kernel is None else kernel.merge_for(fold)


@dataclass(frozen=True)
class RunFold(PartsQuestion):
    """The summaries of a fold over the fewest nodes, and whether the plain fold has run."""

    fold: Fold | None = None
    plain: bool = False

    def run(self, holder: Holder, parts: list[OpenPart]) -> tuple[dict[Node, Any], bool]:
        opening, fold = holder.opening, self.fold
        assert fold is not None

        def one(open_node: OpenNode) -> tuple[Any, bool]:
            return open_node.fold(opening, fold, self.plain)

        nodes = [node for part in parts for node in part.nodes]
        found = holder.map(one, nodes)
        plain = found[0][1]
        summaries = {node.node: summary for node, (summary, _) in zip(nodes, found, strict=True)}
        if isinstance(fold, NewSeed):  # what rows are drawn by, for each node
            return summaries, plain
        merge = merge_of(opening, fold, plain)
        return joined(merge, summaries, opening.layout.n_leaves), plain


@dataclass(frozen=True)
class LabelSums(PartsQuestion):
    """The sums of points by label from the beginning, after `Nearest` on the native engine."""

    n_clusters: int = 0

    def run(self, holder: Holder, parts: list[OpenPart]) -> dict[Node, Any]:
        def one(open_node: OpenNode) -> Any:
            assert isinstance(open_node.session, NativeSession)
            return label_sums(open_node.session.points, self.n_clusters)

        nodes = [node for part in parts for node in part.nodes]
        found = dict(zip((node.node for node in nodes), holder.map(one, nodes), strict=True))
        return joined(add_all, found, holder.opening.layout.n_leaves)


def add_all(first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
    """Add up tuples of tensors."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class Forget(PartsQuestion):
    """Forget the labels of the last iteration."""

    def run(self, holder: Holder, parts: list[OpenPart]) -> None:
        for part in parts:
            for node in part.nodes:
                node.session.forget()


@dataclass(frozen=True)
class Masses(PartsQuestion):
    """What rows are drawn by, summed up for each node of each part."""

    by: DrawnBy = "distance"
    drawn: tuple[int, ...] = ()
    nodes: frozenset[Node] | None = None
    """The nodes that are asked; None: all."""

    def run(self, holder: Holder, parts: list[OpenPart]) -> dict[Node, float]:
        asked = [
            n for part in parts for n in part.nodes if self.nodes is None or n.node in self.nodes
        ]
        found = holder.map(lambda node: node.mass(self.by, list(self.drawn)), asked)
        return dict(zip((node.node for node in asked), found, strict=True))


@dataclass(frozen=True)
class RowsAt(PartsQuestion):
    """The rows where the running mass within some nodes exceeds targets, and their points."""

    by: DrawnBy = "distance"
    drawn: tuple[int, ...] = ()
    targets: tuple[tuple[Node, tuple[float, ...]], ...] = ()

    def run(self, holder: Holder, parts: list[OpenPart]) -> dict[Node, tuple[list[int], Tensor]]:
        here = {node.node: node for part in parts for node in part.nodes}
        drawn = list(self.drawn)
        return {
            node: here[node].rows_at(self.by, drawn, list(targets))
            for node, targets in self.targets
            if node in here
        }


@dataclass(frozen=True)
class Gather(PartsQuestion):
    """Some rows by their global numbers: their places in the list, and the rows.

    seen: in the coordinates of the layout; otherwise in the units of the user, with weights.
    """

    rows: Tensor | None = None
    seen: bool = True

    def run(
        self, holder: Holder, parts: list[OpenPart]
    ) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        rows, found = self.rows, []
        assert rows is not None
        for part in parts:
            first, blocks = part.blocks.first_row, part.blocks
            places = ((rows >= first) & (rows < first + blocks.n_rows)).nonzero()[:, 0]
            if len(places):
                here = rows[places] - first
                weights = blocks.sample_weight
                found.append(
                    (
                        places,
                        blocks.take(here) if self.seen else blocks.points[here],
                        None if weights is None else weights[here],
                    )
                )
        return found


@dataclass(frozen=True)
class Delegate(PartsQuestion):
    """A method of the session of all rows, which are one node."""

    method: str = ""
    arguments: tuple[Any, ...] = ()

    def run(self, holder: Holder, parts: list[OpenPart]) -> Any:
        ((open_node,),) = (part.nodes for part in parts)
        return getattr(open_node.session, self.method)(*self.arguments)


@dataclass(frozen=True)
class Replay(PartsQuestion):
    """Make the state of parts again, from the beginning, by the questions of a journal."""

    entries: tuple[PartsQuestion, ...] = ()

    def run(self, holder: Holder, parts: list[OpenPart]) -> None:
        for part in parts:
            part.close()
        for entry in self.entries:
            entry.run(holder, parts)


@dataclass(frozen=True)
class OfLabels(PartsQuestion):
    """A function of the labels that folds lead to, for each part: its first row, and the result.

    It takes a labelling for each sequence of folds. The state of the parts stays as it is.
    """

    folds: tuple[tuple[Fold, ...], ...] = ()
    function: Callable[..., Any] | None = None

    def run(self, holder: Holder, parts: list[OpenPart]) -> list[tuple[int, Any]]:
        return [(part.blocks.first_row, self._of(holder.opening, part)) for part in parts]

    def _of(self, opening: Opening, part: OpenPart) -> Any:
        assert self.function is not None
        return self.function(*(labelling(opening, part.blocks, folds) for folds in self.folds))


Labelling = tuple[Tensor, Tensor | None]
"""Labels (m,) and which points are trimmed, or None."""


def labelling(opening: Opening, blocks: TensorBlocks, folds: tuple[Fold, ...]) -> Labelling:
    """The labels of some rows after some folds: they do not depend on the other rows."""
    with opening.engine_with(1).open(blocks) as session:
        for fold in folds:
            session.fold(fold)
        return session.labels(), session.trimmed()


@dataclass(frozen=True)
class AllWeights(PartsQuestion):
    """The weights of each part, and its first row."""

    def run(self, holder: Holder, parts: list[OpenPart]) -> list[tuple[int, Tensor]]:
        weights = [(part.blocks.first_row, part.blocks.sample_weight) for part in parts]
        return [(first, w) for first, w in weights if w is not None]


@dataclass(frozen=True)
class Close(PartsQuestion):
    """Free the state of the points; the points stay."""

    following: int | None = 0

    def run(self, holder: Holder, parts: list[OpenPart]) -> None:
        for part in parts:
            part.close()


def gathered(found: list[Any], n_rows: int) -> tuple[Tensor, Tensor | None]:
    """Rows in the order in which `Gather` asked for them, and their weights."""
    answers = [each for some in found for each in some]
    order = torch.cat([places for places, _, _ in answers]).argsort()
    assert len(order) == n_rows, "every row is in one part"
    rows = torch.cat([rows for _, rows, _ in answers])[order]
    if answers[0][2] is None:
        return rows, None
    return rows, torch.cat([weights for _, _, weights in answers])[order]
