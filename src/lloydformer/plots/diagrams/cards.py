"""Cards: boxes with a name and rows of words, and stacks of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lloydformer.plots.diagrams.svg import SIZES, group, measured, rectangle, text, wrapped

PADDING, LINE, GAP = 12.0, 18.0, 10.0
WIDEST = 185.0
"""The width at which words of a row go to the next line."""


@dataclass(frozen=True)
class Row:
    """A row of a card: a label, words, and the field of the part that they show."""

    label: str
    words: str
    field: str = ""


@dataclass(frozen=True)
class Card:
    """A box of a diagram; `part` is the name that the trace gives to what it stands for.

    kind: self, cross, network or numbers, with "optional" if it may be left out.
    """

    part: str
    name: str
    rows: tuple[Row, ...]
    kind: str = ""
    note: str = ""

    @cached_property
    def width(self) -> float:
        """The width that all words need."""
        words = [self._indent + measured(line, "word") for row in self._wrapped for line in row[1]]
        heads = [measured(self.name, "name"), *(measured(n, "note") for n in self._notes)]
        return 2 * PADDING + max([*words, *heads])

    @cached_property
    def height(self) -> float:
        """The height of all lines."""
        lines = 1 + len(self._notes) + sum(len(words) for _, words in self._wrapped)
        return 2 * PADDING + lines * LINE - 4

    @cached_property
    def _indent(self) -> float:
        """Where the words begin, right of the labels."""
        widths = [measured(row.label, "label") for row in self.rows if row.label]
        return max(widths) + GAP if widths else 0.0

    @cached_property
    def _notes(self) -> list[str]:
        return wrapped(self.note, "note", self._indent + WIDEST) if self.note else []

    @cached_property
    def _wrapped(self) -> list[tuple[Row, list[str]]]:
        return [(row, wrapped(row.words, "word", WIDEST)) for row in self.rows]

    def drawn(self, x: float, y: float, width: float | None = None) -> str:
        """Return the card with its upper left corner at (x, y)."""
        left, baseline = x + PADDING, y + PADDING + SIZES["name"] - 2
        lines = [
            rectangle(x, y, width or self.width, self.height, f"card {self.kind}".strip()),
            text(self.name, left, baseline, "name"),
        ]
        for note in self._notes:
            baseline += LINE
            lines.append(text(note, left, baseline, "note"))
        for row, words in self._wrapped:
            inside = [text(row.label, left, baseline + LINE, "label")] if row.label else []
            for line in words:
                baseline += LINE
                inside.append(text(line, left + self._indent, baseline, "word"))
            lines.append(group(inside, data_field=row.field))
        return group(lines, data_part=self.part)


@dataclass(frozen=True)
class Stack:
    """Cards on top of each other: the heads of a slot, whose outputs are added."""

    slot: str
    cards: Sequence[Card]

    @cached_property
    def framed(self) -> bool:
        """Several heads have a frame around them, with a line of words."""
        return len(self.cards) > 1

    @cached_property
    def width(self) -> float:
        """The width of the widest card, and of the frame."""
        return max(card.width for card in self.cards) + 2 * GAP * self.framed

    @cached_property
    def height(self) -> float:
        """The height of all cards with gaps, and of the frame."""
        cards = sum(card.height for card in self.cards) + GAP * (len(self.cards) - 1)
        return cards + (2 * GAP + LINE) * self.framed

    def drawn(self, x: float, y: float, width: float) -> str:
        """Return the stack with its upper left corner at (x, y), and all its cards of a width."""
        lines = []
        if self.framed:
            words = f"{len(self.cards)} heads, their outputs are added"
            lines = [rectangle(x, y, width, self.height, "frame"),
                     text(words, x + GAP, y + GAP + 8, "note")]  # fmt: skip
            x, y, width = x + GAP, y + GAP + LINE, width - 2 * GAP
        for card in self.cards:
            lines.append(card.drawn(x, y, width))
            y += card.height + GAP
        return group(lines, data_slot=self.slot)
