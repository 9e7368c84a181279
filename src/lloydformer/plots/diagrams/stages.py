"""The diagram of a recipe of several stages: panels in the order in which they run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lloydformer.circuits.stages import Staged, Sublayer
from lloydformer.fork_safety import cached_property
from lloydformer.plots.diagrams.cards import GAP, LINE, Card, CardRow
from lloydformer.plots.diagrams.descriptions import describe_product, spell_subspace
from lloydformer.plots.diagrams.layer import describe_head
from lloydformer.plots.diagrams.svg import group, rectangle, text, text_width, wire

# Panels that do not fit into this width go to the next line (chosen by eye).
_WIDTH = 1300.0
# Pixels between panels, which hold an arrow, and for the two lines of words of a panel.
_BETWEEN = 26.0
_HEAD = 2 * LINE + 14


@dataclass(frozen=True)
class Panel:
    """A stage: what its tokens start as, and the cards of its attentions and networks."""

    part: str
    name: str
    note: str
    cards: tuple[Card, ...]

    @cached_property
    def width(self) -> float:
        """The width of the widest line of cards, or of the words."""
        cards = max((sum(card.width + GAP for card in line) for line in self._lines), default=0.0)
        words = max(text_width(self.name, "name"), text_width(self.note, "note")) + GAP
        return max(cards, words) + GAP

    @cached_property
    def height(self) -> float:
        """The height of the words and of all lines of cards."""
        return _HEAD + sum(_max_height(line) + GAP for line in self._lines)

    @cached_property
    def _lines(self) -> list[list[Card]]:
        return list(_wrap_boxes(self.cards, _WIDTH - GAP, GAP))

    def draw(self, x: float, y: float, height: float) -> str:
        """Return the panel with its upper left corner at (x, y)."""
        drawing = [
            rectangle(x, y, self.width, height, "panel"),
            text(self.name, x + GAP, y + 20, "name"),
            text(self.note, x + GAP, y + 20 + LINE, "note"),
        ]
        y += _HEAD
        for cards in self._lines:
            across = x + GAP
            for card in cards:
                drawing.append(card.draw(across, y))
                across += card.width + GAP
            y += _max_height(cards) + GAP
        return group(drawing, data_stage=self.part)


Box = TypeVar("Box", Card, Panel)


def _wrap_boxes(boxes: Sequence[Box], width: float, gap: float) -> Iterator[list[Box]]:
    """Yield the boxes in lines of at most this width; a wider box has a line of its own."""
    line: list[Box] = []
    for box in boxes:
        if line and sum(one.width + gap for one in line) + box.width > width:
            yield line
            line = []
        line.append(box)
    if line:
        yield line


def _max_height(line: Sequence[Card | Panel]) -> float:
    return max(box.height for box in line)


def draw_stages(recipe: Staged, left: float, top: float) -> tuple[list[str], float, float]:
    """Return the drawing of all stages, its right edge and its bottom."""
    lines: list[str] = []
    for sublayer in recipe.sublayers:
        lines.append(text(sublayer.name, left, top, "title"))
        if sublayer.repeated:
            begin = left + text_width(sublayer.name, "title") + GAP
            lines.append(text(f"runs once for each of {sublayer.counted}", begin, top, "note"))
        drawing: list[str] = []
        bottom = top + LINE
        for row in _wrap_boxes(list(_panels(sublayer)), _WIDTH, _BETWEEN):
            x, height = left, _max_height(row)
            for panel in row:
                if x > left:  # an arrow from the panel before
                    y = bottom + 16
                    drawing.append(wire([(x - _BETWEEN + 3, y), (x - 3, y)], "order"))
                drawing.append(panel.draw(x, bottom, height))
                x += panel.width + _BETWEEN
            bottom += height + GAP + 4
        lines.append(group(drawing, data_part=sublayer.name))
        top = bottom + 2 * LINE  # the title of the next sublayer
    return lines, left + _WIDTH, bottom


def _panels(sublayer: Sublayer) -> Iterator[Panel]:
    for number, stage in enumerate(sublayer.stages, start=1):
        part, cards = f"{sublayer.name}.{stage.name}", []
        for read in stage.reads:
            rows = list(describe_head(read.head))
            if read.across:
                rows.append(CardRow("keys", "the same token in every proposal", "across"))
            if read.lots:
                rows.append(CardRow("noise", read.lots, "lots"))
            kind = "self" if stage.target in read.sources else "cross"
            note = f"{stage.target} attend to {' and '.join(read.sources)}"
            cards.append(Card(f"{part}.{read.name}", read.name, tuple(rows), kind, note))
        if stage.networks:
            adds = (
                CardRow(spell_subspace(network.target), describe_product(network))
                for network in stage.networks
            )
            cards.append(Card(f"{part}.network", "network", tuple(adds), "network", "adds to"))
        # The tokens that the stage changes, or those that it makes, and of which.
        start = f"made of {' and '.join(stage.of)}" if stage.of else "changed"
        along = f", once for each of {stage.along}" if stage.along else ""
        note = f"{stage.target}: {start}{along}"
        yield Panel(part, f"{number} {stage.name}", note, tuple(cards))
