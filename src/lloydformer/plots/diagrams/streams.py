"""Two streams of tokens from left to right, and what reads and writes them, column by column."""

from collections.abc import Iterator, Sequence

from lloydformer.plots.diagrams.columns import (
    LEAD,
    PLUS,
    SPACE,
    Attached,
    Column,
    Inline,
    Side,
    Tap,
    TokenColumn,
)
from lloydformer.plots.diagrams.svg import dot, group, plus, text, wire


def streams(columns: Sequence[Column], left: float, top: float) -> tuple[list[str], float, float]:
    """Return the drawing of the columns, its right edge and its bottom."""
    heights = {place: max(0.0, *(column.height(place) for column in columns))
               for place in ("above", "between", "below")}  # fmt: skip
    encoder = top + heights["above"] + SPACE
    decoder = encoder + heights["between"] + 2 * SPACE
    at: dict[Side, float] = {"encoder": encoder, "decoder": decoder}
    right = left + sum(column.width for column in columns)
    begin, end = left + columns[0].width - 12, right - columns[-1].width + 10
    lines = [
        group([wire([(begin, y), (end, y)], f"stream {side}")], data_part=f"{side}_stream")
        for side, y in at.items()
    ]
    x = left
    for column in columns:
        lines += _column(column, x, at)
        x += column.width
    return lines, right, decoder + SPACE + heights["below"]


def _column(column: Column, x: float, at: dict[Side, float]) -> Iterator[str]:
    if isinstance(column, TokenColumn):
        yield column.encoder.drawn(x + 12, at["encoder"], "encoder", column.width - 24)
        yield column.decoder.drawn(x + 12, at["decoder"], "decoder", column.width - 24)
    elif isinstance(column, Inline):
        card = column.card
        yield card.drawn(x + LEAD, at[column.side] - card.height / 2)
    else:
        for index, one in enumerate(column.attached):
            addition = x + LEAD + column.boxes + PLUS * (index + 1)
            yield from _attached(one, x + LEAD, column.boxes, addition, at)


def _attached(
    one: Attached, x: float, width: float, addition: float, at: dict[Side, float]
) -> Iterator[str]:
    """Yield boxes with their wires; `addition` is where the output meets the stream."""
    stack, place = one.stack, one.place
    y = {
        "above": at["encoder"] - SPACE - stack.height,
        "between": (at["encoder"] + at["decoder"] - stack.height) / 2,
        "below": at["decoder"] + SPACE,
    }[place]
    wires = [_tap(tap, x + _first_tap(place) + 56 * number, y, stack.height, at[tap.side])
             for number, tap in enumerate(one.taps)]  # fmt: skip
    level, end = y + stack.height / 2, at[one.joins]
    stop = end + (11 if level > end else -11) * (not one.replaces)
    wires.append(wire([(x + width, level), (addition, level), (addition, stop)], one.joins))
    yield group(wires, data_wires=stack.slot)
    yield stack.drawn(x, y, width)
    if not one.replaces:
        yield plus(addition, end, one.total)


def _first_tap(place: str) -> float:
    """Where the first wire is; not in line with the one on the other side of the stream."""
    return 22.0 if place == "between" else 44.0


def _tap(tap: Tap, x: float, top: float, height: float, stream: float) -> str:
    """Return the wire from a stream to the near edge of a box."""
    down = stream < top
    end = top if down else top + height
    words = [text(tap.words, x + 9, end - 16 if down else end + 25, "label")] if tap.words else []
    return "\n".join([wire([(x, stream), (x, end)], tap.side), dot(x, stream, tap.side), *words])
