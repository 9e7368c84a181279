"""Which rank holds which rows: parts that end at leaves, near the ends of the shards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lloydformer.engines.parts.cuts import Cut, cuts


@dataclass(frozen=True)
class Place:
    """A part, and the rank that holds it."""

    cut: Cut
    rank: int


def places(lengths: Sequence[int], leaf: int, *, single: bool) -> list[Place]:
    """The parts of shards of these lengths, in their order; with `single` they are one part.

    A part is held by the rank that has most of its rows. Leaves with rows of other ranks are parts
    of their own, so that the rank's own rows need not be copied to stand beside them.
    """
    parts = cuts(lengths, leaf, sum(lengths) if single else 1)
    if len(parts) == 1:
        return [Place(parts[0], _holder(parts[0]))]
    return [Place(cut, _holder(part)) for part in parts for cut in _split(part, leaf)]


def _holder(part: Cut) -> int:
    return max(part.pieces, key=lambda piece: piece[2] - piece[1])[0]


def _split(part: Cut, leaf: int) -> Iterator[Cut]:
    """The part, cut before and after the whole leaves of its largest piece."""
    at, ends = part.start, [part.start]
    for number, first, last in part.pieces:
        stop = at + last - first
        if number == _holder(part):
            inner = -(-at // leaf) * leaf, stop if stop == part.stop else stop // leaf * leaf
            if inner[0] < inner[1]:
                ends += [end for end in inner if part.start < end < part.stop]
        at = stop
    for start, stop in zip(ends, [*ends[1:], part.stop], strict=True):
        yield Cut(start, stop, tuple(_pieces_between(part, start, stop)))


def _pieces_between(part: Cut, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    at = part.start
    for number, first, last in part.pieces:
        low, high = max(start, at), min(stop, at + last - first)
        if low < high:
            yield number, first + low - at, first + high - at
        at += last - first
