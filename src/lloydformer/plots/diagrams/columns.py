"""The columns of a diagram: tokens, boxes beside the streams, and boxes on a stream."""

from dataclasses import dataclass
from typing import Literal

from lloydformer.plots.diagrams.cards import Card, Stack
from lloydformer.plots.diagrams.svg import group, measured, rectangle, text

Side = Literal["encoder", "decoder"]
SPACE = 46.0
"""Between a stream and the boxes above and below it."""
LEAD, PLUS = 15.0, 29.0
CHIP = 24.0


@dataclass(frozen=True)
class Tap:
    """A wire from a stream to a box, with words at its side."""

    side: Side
    words: str = ""


@dataclass(frozen=True)
class Attached:
    """Boxes that read streams by taps, and are added to a stream.

    total: name of the sum in the trace. replaces: the output is written, not added.
    """

    stack: Stack
    taps: tuple[Tap, ...]
    joins: Side
    total: str = ""
    replaces: bool = False

    @property
    def place(self) -> str:
        """Above the encoder's stream, below the decoder's, or between the two."""
        sides = {tap.side for tap in self.taps}
        if len(sides) == 2:
            return "between"
        return "above" if sides == {"encoder"} else "below"


@dataclass(frozen=True)
class Update:
    """A column of boxes that read the streams as they arrive; they are added in this order."""

    attached: tuple[Attached, ...]

    @property
    def width(self) -> float:
        """The width of the boxes and of the additions to their right."""
        return self.boxes + 2 * LEAD + PLUS * len(self.attached)

    @property
    def boxes(self) -> float:
        """The width of the widest boxes."""
        return max(one.stack.width for one in self.attached)

    def height(self, place: str) -> float:
        """The height of the boxes in a place."""
        return max((o.stack.height for o in self.attached if o.place == place), default=0.0)


@dataclass(frozen=True)
class Inline:
    """A box that the tokens of a stream go through."""

    card: Card
    side: Side

    @property
    def width(self) -> float:
        """The width of the card with gaps."""
        return self.card.width + 2 * LEAD

    def height(self, place: str) -> float:
        """It stands on the stream itself."""
        return 0.0


@dataclass(frozen=True)
class Chips:
    """Tokens of one side: their subspaces, those just written, and those that not all have."""

    part: str
    name: str
    note: str
    subspaces: tuple[str, ...]
    written: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def width(self) -> float:
        """The width of the widest words."""
        heads = [measured(self.name, "name"), measured(self.note, "note")]
        return max([*(measured(s, "word") + 20 for s in self.subspaces), *heads])

    def drawn(self, x: float, middle: float, side: Side, width: float) -> str:
        """Return the tokens around the stream at the height `middle`."""
        top = middle - CHIP * len(self.subspaces) / 2
        lines = [text(self.name, x, top - (25 if self.note else 9), "name")]
        lines += [text(self.note, x, top - 9, "note")] if self.note else []
        for written in (False, True):  # thick outlines on top
            for index, subspace in enumerate(self.subspaces):
                kind = f"chip {side}" + " written" * written
                kind += " optional" * (subspace in self.optional)
                if (subspace in self.written) == written:
                    lines.append(rectangle(x, top + CHIP * index, width, CHIP, kind, 3))
                    lines.append(text(subspace, x + 10, top + CHIP * index + 16.5, "word"))
        return group(lines, data_part=self.part)


@dataclass(frozen=True)
class TokenColumn:
    """A column with the tokens of both sides."""

    encoder: Chips
    decoder: Chips

    @property
    def width(self) -> float:
        """The width of the wider tokens, with gaps."""
        return max(self.encoder.width, self.decoder.width) + 24

    def height(self, place: str) -> float:
        """Tokens need room above and below their streams."""
        above, below = (len(c.subspaces) * CHIP / 2 for c in (self.encoder, self.decoder))
        return {"above": above + 40 - SPACE, "between": above + below + 60 - 2 * SPACE,
                "below": below + 10 - SPACE}[place]  # fmt: skip


Column = TokenColumn | Update | Inline
