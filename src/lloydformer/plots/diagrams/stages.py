"""The diagram of a recipe of several stages: panels in the order in which they run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from lloydformer.circuits.stages import Read, Stage, Staged, Sublayer
from lloydformer.plots.diagrams.cards import GAP, LINE, Card, Row
from lloydformer.plots.diagrams.layer import head_rows
from lloydformer.plots.diagrams.svg import group, measured, rectangle, text, wire
from lloydformer.plots.diagrams.words import product_words, subspace_words

WIDTH = 1300.0
"""Panels that do not fit into this width go to the next line."""
BETWEEN = 26.0
HEAD = 2 * LINE + 14


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
        words = max(measured(self.name, "name"), measured(self.note, "note")) + GAP
        return max(cards, words) + GAP

    @cached_property
    def height(self) -> float:
        """The height of the words and of all lines of cards."""
        return HEAD + sum(_height(line) + GAP for line in self._lines)

    @cached_property
    def _lines(self) -> list[list[Card]]:
        return list(in_lines(self.cards, WIDTH - GAP, GAP))

    def drawn(self, x: float, y: float, height: float) -> str:
        """Return the panel with its upper left corner at (x, y)."""
        lines = [
            rectangle(x, y, self.width, height, "panel"),
            text(self.name, x + GAP, y + 20, "name"),
            text(self.note, x + GAP, y + 20 + LINE, "note"),
        ]
        y += HEAD
        for cards in self._lines:
            across = x + GAP
            for card in cards:
                lines.append(card.drawn(across, y))
                across += card.width + GAP
            y += _height(cards) + GAP
        return group(lines, data_stage=self.part)


Boxed = TypeVar("Boxed", Card, Panel)


def in_lines(boxes: Sequence[Boxed], width: float, gap: float) -> Iterator[list[Boxed]]:
    """Yield the boxes in lines of at most this width, like words; a wider box stands alone."""
    line: list[Boxed] = []
    for box in boxes:
        if line and sum(one.width + gap for one in line) + box.width > width:
            yield line
            line = []
        line.append(box)
    if line:
        yield line


def _height(line: Sequence[Card | Panel]) -> float:
    return max(box.height for box in line)


def stage_panels(recipe: Staged, left: float, top: float) -> tuple[list[str], float, float]:
    """Return the drawing of all stages, its right edge and its bottom."""
    lines: list[str] = []
    for sublayer in recipe.sublayers:
        lines.append(text(sublayer.name, left, top, "title"))
        if sublayer.repeated:
            begin = left + measured(sublayer.name, "title") + GAP
            lines.append(text(f"runs once for each of {sublayer.counted}", begin, top, "note"))
        drawn, top = _rows(list(_panels(sublayer)), left, top + LINE)
        lines += [group(drawn, data_part=sublayer.name)]
        top += 2 * LINE
    return lines, left + WIDTH, top - 2 * LINE


def _panels(sublayer: Sublayer) -> Iterator[Panel]:
    for number, stage in enumerate(sublayer.stages, start=1):
        part = f"{sublayer.name}.{stage.name}"
        cards = [_read_card(part, stage, read) for read in stage.reads]
        if stage.networks:
            rows = tuple(Row(subspace_words(n.target), product_words(n)) for n in stage.networks)
            cards.append(Card(f"{part}.network", "network", rows, "network", "adds to"))
        yield Panel(part, f"{number} {stage.name}", _start(stage), tuple(cards))


def _start(stage: Stage) -> str:
    """Say which tokens the stage changes, or which it makes of which."""
    start = f"made of {' and '.join(stage.of)}" if stage.of else "changed"
    along = f", once for each of {stage.along}" if stage.along else ""
    return f"{stage.target}: {start}{along}"


def _read_card(part: str, stage: Stage, read: Read) -> Card:
    kind = "self" if stage.target in read.sources else "cross"
    keys = " and ".join(read.sources)
    rows = list(head_rows(read.head))
    if read.across:
        rows.append(Row("keys", "the same token in every proposal", "across"))
    if read.lots:
        rows.append(Row("noise", read.lots, "lots"))
    note = f"{stage.target} attend to {keys}"
    return Card(f"{part}.{read.name}", read.name, tuple(rows), kind, note)


def _rows(panels: list[Panel], left: float, top: float) -> tuple[list[str], float]:
    """Return the panels in lines, and where the last line ends."""
    lines: list[str] = []
    for row in in_lines(panels, WIDTH, BETWEEN):
        x = left
        for panel in row:
            if x > left:
                lines.append(wire([(x - BETWEEN + 3, top + 16), (x - 3, top + 16)], "order"))
            lines.append(panel.drawn(x, top, _height(row)))
            x += panel.width + BETWEEN
        top += _height(row) + GAP + 4
    return lines, top
