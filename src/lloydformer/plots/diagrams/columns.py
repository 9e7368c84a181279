"""Columns of a diagram, placed along two streams of tokens that run from left to right.

The encoder's stream (points) is above the decoder's (centers). A column holds the tokens of both
sides, or boxes that read the streams and are added to one of them, or a box on a stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lloydformer.plots.diagrams.cards import Card, Stack
from lloydformer.plots.diagrams.svg import dot, group, plus, rectangle, text, text_width, wire

Side = Literal["encoder", "decoder"]
Band = Literal["above", "between", "below"]  # where a box is, seen from the two streams

# Pixels between a stream and the boxes above and below it: room for a wire with words at its side.
_SPACE = 46.0
# Pixels left and right of the boxes of a column, and for each ⊕ to their right.
_LEAD, _PLUS = 15.0, 29.0
# The height of one subspace of a token.
_CHIP = 24.0


@dataclass(frozen=True)
class Chips:
    """The tokens of one side, a chip for each subspace.

    Attributes
    ----------
    part : str
        The name in a trace.
    name, note : str
        Two lines above the chips.
    subspaces : tuple of str
        The words on the chips.
    written : frozenset of str
        Subspaces with a thick outline: what the layer has written.
    optional : frozenset of str
        Subspaces with a dashed outline: not all recipes have them.
    """

    part: str
    name: str
    note: str
    subspaces: tuple[str, ...]
    written: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def width(self) -> float:
        """The width of the widest words."""
        heads = [text_width(self.name, "name"), text_width(self.note, "note")]
        return max([*(text_width(s, "word") + 20 for s in self.subspaces), *heads])

    @property
    def half_height(self) -> float:
        """The height of the chips above the stream, and below it."""
        return _CHIP * len(self.subspaces) / 2

    def draw(self, x: float, stream: float, side: Side, width: float) -> str:
        """Return the tokens around the stream at this height."""
        top = stream - self.half_height
        lines = [text(self.name, x, top - (25 if self.note else 9), "name")]
        lines += [text(self.note, x, top - 9, "note")] if self.note else []
        # Later elements are drawn over earlier ones: thick outlines come last.
        for written in (False, True):
            for index, subspace in enumerate(self.subspaces):
                if (subspace in self.written) == written:
                    kind = f"chip {side}" + " written" * written
                    kind += " optional" * (subspace in self.optional)
                    lines.append(rectangle(x, top + _CHIP * index, width, _CHIP, kind, 3))
                    lines.append(text(subspace, x + 10, top + _CHIP * index + 16.5, "word"))
        return group(lines, data_part=self.part)


@dataclass(frozen=True)
class TokenColumn:
    """A column with the tokens of both sides."""

    encoder: Chips
    decoder: Chips

    @property
    def width(self) -> float:
        """The width of the wider tokens, with margins."""
        return max(self.encoder.width, self.decoder.width) + 24

    def height(self, band: Band) -> float:
        """Return the height of the chips, and of the words above them, beyond `_SPACE`."""
        above, below = self.encoder.half_height, self.decoder.half_height
        if band == "above":
            return above + 40 - _SPACE
        return above + below + 60 - 2 * _SPACE if band == "between" else below + 10 - _SPACE

    def draw(self, x: float, streams: dict[Side, float]) -> Iterator[str]:
        """Yield the tokens of both sides."""
        yield self.encoder.draw(x + 12, streams["encoder"], "encoder", self.width - 24)
        yield self.decoder.draw(x + 12, streams["decoder"], "decoder", self.width - 24)


@dataclass(frozen=True)
class InlineColumn:
    """A box that the tokens of a stream go through."""

    card: Card
    side: Side

    @property
    def width(self) -> float:
        """The width of the card with margins."""
        return self.card.width + 2 * _LEAD

    def height(self, band: Band) -> float:
        """Return 0: the box is on the stream itself, within `_SPACE`."""
        return 0.0

    def draw(self, x: float, streams: dict[Side, float]) -> Iterator[str]:
        """Yield the card."""
        yield self.card.draw(x + _LEAD, streams[self.side] - self.card.height / 2)


@dataclass(frozen=True)
class Tap:
    """A wire from a stream to a box, with words at its side."""

    side: Side
    words: str = ""

    def draw(self, x: float, top: float, height: float, stream: float) -> str:
        """Return the wire from the stream to the near edge of a box."""
        down = stream < top
        end = top if down else top + height
        lines = [wire([(x, stream), (x, end)], self.side), dot(x, stream, self.side)]
        if self.words:
            lines.append(text(self.words, x + 9, end - 16 if down else end + 25, "label"))
        return "\n".join(lines)


@dataclass(frozen=True)
class Branch:
    """Boxes that read streams by taps, and whose output is added to a stream.

    Attributes
    ----------
    stack : Stack
        The boxes.
    taps : tuple of Tap
        The wires that lead to them.
    joins : {"encoder", "decoder"}
        The stream that the output joins.
    total : str
        The name of the sum in a trace.
    replaces : bool
        Whether the output is written to the stream instead of added.
    """

    stack: Stack
    taps: tuple[Tap, ...]
    joins: Side
    total: str = ""
    replaces: bool = False

    @property
    def band(self) -> Band:
        """Above the encoder's stream, below the decoder's, or between the two."""
        sides = {tap.side for tap in self.taps}
        if len(sides) == 2:
            return "between"
        return "above" if sides == {"encoder"} else "below"

    def draw(
        self, x: float, width: float, addition: float, streams: dict[Side, float]
    ) -> Iterator[str]:
        """Yield boxes with their wires; the output meets the stream at x = `addition`."""
        stack, band = self.stack, self.band
        y = {
            "above": streams["encoder"] - _SPACE - stack.height,
            "between": (streams["encoder"] + streams["decoder"] - stack.height) / 2,
            "below": streams["decoder"] + _SPACE,
        }[band]
        # Wires on the two sides of a stream are not in line with each other.
        first = x + (22.0 if band == "between" else 44.0)
        wires = [
            tap.draw(first + 56 * number, y, stack.height, streams[tap.side])
            for number, tap in enumerate(self.taps)
        ]
        level, end = y + stack.height / 2, streams[self.joins]
        # The wire ends at the edge of the sign ⊕, or at the stream if there is none.
        stop = end + (11 if level > end else -11) * (not self.replaces)
        wires.append(wire([(x + width, level), (addition, level), (addition, stop)], self.joins))
        yield group(wires, data_wires=stack.slot)
        yield stack.draw(x, y, width)
        if not self.replaces:
            yield plus(addition, end, self.total)


@dataclass(frozen=True)
class BranchColumn:
    """A column of branches that read the streams as they arrive; they are added in this order."""

    branches: tuple[Branch, ...]

    @property
    def width(self) -> float:
        """The width of the boxes and of the additions to their right."""
        return self._box_width + 2 * _LEAD + _PLUS * len(self.branches)

    @property
    def _box_width(self) -> float:
        return max(branch.stack.width for branch in self.branches)

    def height(self, band: Band) -> float:
        """Return the height of the boxes in a band."""
        return max((b.stack.height for b in self.branches if b.band == band), default=0.0)

    def draw(self, x: float, streams: dict[Side, float]) -> Iterator[str]:
        """Yield all branches; each meets its stream right of the one before."""
        for number, branch in enumerate(self.branches, start=1):
            addition = x + _LEAD + self._box_width + _PLUS * number
            yield from branch.draw(x + _LEAD, self._box_width, addition, streams)


# All kinds of columns have `width`, with margins; `height(band)`, what they need in a band; and
# `draw(x, streams)`, which yields their elements for a left edge and the heights of the streams.
Column = TokenColumn | InlineColumn | BranchColumn


def draw_columns(
    columns: Sequence[Column], left: float, top: float
) -> tuple[list[str], float, float]:
    """Return the drawing of the streams with their columns, its right edge and its bottom."""
    above, between, below = (
        max(0.0, *(column.height(band) for column in columns))
        for band in ("above", "between", "below")
    )
    encoder = top + above + _SPACE
    decoder = encoder + between + 2 * _SPACE
    streams: dict[Side, float] = {"encoder": encoder, "decoder": decoder}
    right = left + sum(column.width for column in columns)
    begin, end = left + columns[0].width - 12, right - columns[-1].width + 10
    lines = [
        group([wire([(begin, y), (end, y)], f"stream {side}")], data_part=f"{side}_stream")
        for side, y in streams.items()
    ]
    x = left
    for column in columns:
        lines += column.draw(x, streams)
        x += column.width
    return lines, right, decoder + _SPACE + below
