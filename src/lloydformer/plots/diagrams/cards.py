"""Cards: boxes with a name and rows of words, and stacks of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from lloydformer.fork_safety import cached_property
from lloydformer.plots.diagrams.svg import FONT_SIZES, group, rectangle, text, text_width, wrap_text

# Pixels inside of a card's edge, from line to line, and between cards or a label and its words.
PADDING, LINE, GAP = 12.0, 18.0, 10.0

# The width at which the words of a row go to the next line (chosen by eye).
_MAX_WIDTH = 185.0


@dataclass(frozen=True)
class CardRow:
    """A row of a card: a label, words, and the field of the part that they show."""

    label: str
    words: str
    field: str = ""


@dataclass(frozen=True)
class Card:
    """A box of a diagram.

    Attributes
    ----------
    part : str
        The name of the part in a trace.
    name : str
        The title.
    rows : tuple of CardRow
        The rows below it.
    kind : str
        self, cross, network or numbers, followed by "optional" if the part may be left out.
    note : str
        Words between the title and the rows.
    """

    part: str
    name: str
    rows: tuple[CardRow, ...]
    kind: str = ""
    note: str = ""

    @cached_property
    def width(self) -> float:
        """The width that all words need."""
        words = [
            self._indent + text_width(line, "word") for _, lines in self._lines for line in lines
        ]
        heads = [text_width(self.name, "name"), *(text_width(n, "note") for n in self._notes)]
        return 2 * PADDING + max([*words, *heads])

    @cached_property
    def height(self) -> float:
        """The height of all lines."""
        lines = 1 + len(self._notes) + sum(len(words) for _, words in self._lines)
        return 2 * PADDING + lines * LINE - 4

    @cached_property
    def _indent(self) -> float:
        """The space left of the words, for the labels."""
        widths = [text_width(row.label, "label") for row in self.rows if row.label]
        return max(widths) + GAP if widths else 0.0

    @cached_property
    def _notes(self) -> list[str]:
        return wrap_text(self.note, "note", self._indent + _MAX_WIDTH) if self.note else []

    @cached_property
    def _lines(self) -> list[tuple[CardRow, list[str]]]:
        """The rows, each with the lines of its words."""
        return [(row, wrap_text(row.words, "word", _MAX_WIDTH)) for row in self.rows]

    def draw(self, x: float, y: float, width: float | None = None) -> str:
        """Return the card with its upper left corner at (x, y)."""
        left, baseline = x + PADDING, y + PADDING + FONT_SIZES["name"] - 2
        drawing = [
            rectangle(x, y, width or self.width, self.height, f"card {self.kind}".strip()),
            text(self.name, left, baseline, "name"),
        ]
        for note in self._notes:
            baseline += LINE
            drawing.append(text(note, left, baseline, "note"))
        for row, lines in self._lines:
            inside = [text(row.label, left, baseline + LINE, "label")] if row.label else []
            for line in lines:
                baseline += LINE
                inside.append(text(line, left + self._indent, baseline, "word"))
            drawing.append(group(inside, data_field=row.field))
        return group(drawing, data_part=self.part)


@dataclass(frozen=True)
class Stack:
    """Cards on top of each other: the heads of a slot, whose outputs are added.

    Several cards have a frame around them, with a line of words.
    """

    slot: str
    cards: Sequence[Card]

    @cached_property
    def _has_frame(self) -> bool:
        return len(self.cards) > 1

    @cached_property
    def width(self) -> float:
        """The width of the widest card, and of the frame."""
        return max(card.width for card in self.cards) + 2 * GAP * self._has_frame

    @cached_property
    def height(self) -> float:
        """The height of all cards with gaps, and of the frame."""
        cards = sum(card.height for card in self.cards) + GAP * (len(self.cards) - 1)
        return cards + (2 * GAP + LINE) * self._has_frame

    def draw(self, x: float, y: float, width: float) -> str:
        """Return the stack with its upper left corner at (x, y), and all its cards of a width."""
        drawing = []
        if self._has_frame:
            words = f"{len(self.cards)} heads, their outputs are added"
            drawing.append(rectangle(x, y, width, self.height, "frame"))
            drawing.append(text(words, x + GAP, y + GAP + 8, "note"))
            x, y, width = x + GAP, y + GAP + LINE, width - 2 * GAP
        for card in self.cards:
            drawing.append(card.draw(x, y, width))
            y += card.height + GAP
        return group(drawing, data_slot=self.slot)
