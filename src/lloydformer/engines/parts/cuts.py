"""Where rows are cut into parts: at leaves, near the cuts that the data have already."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Cut:
    """Rows [start, stop) of a part, made of some consecutive pieces of the data.

    Attributes
    ----------
    start, stop : int
        Global rows; both are multiples of the leaf, but for the end of the data.
    pieces : tuple of (int, int, int)
        Of each piece that it takes rows from: its number, and the rows [from, to) within it.
    """

    start: int
    stop: int
    pieces: tuple[tuple[int, int, int], ...]


def cuts(lengths: Sequence[int], leaf: int, fewest: int = 1, most: int | None = None) -> list[Cut]:
    """Parts of data that lie in pieces of these lengths, in their order.

    A part ends at the leaf next to the end of a piece, so at most half a leaf of rows goes to a
    neighbour. Pieces are put together until a part has `fewest` rows, as far as there are any; a
    piece of more than `most` rows is cut into equal parts.
    """
    n_rows = sum(lengths)
    ends: list[int] = [0]
    for at in _ends(lengths, most or n_rows):
        near = (at + leaf // 2) // leaf * leaf
        if near - ends[-1] >= max(fewest, 1) and n_rows - near >= max(fewest, leaf):
            ends.append(near)
    if n_rows > 0:
        ends.append(n_rows)
    return [_cut(start, stop, lengths) for start, stop in pairwise(ends)]


def _ends(lengths: Sequence[int], most: int) -> Iterator[int]:
    """Where rows may be cut."""
    at = 0
    for length in lengths:
        count = max(1, -(-length // max(most, 1)))
        yield from (at + length * (i + 1) // count for i in range(count))
        at += length


def _cut(start: int, stop: int, lengths: Sequence[int]) -> Cut:
    pieces, at = [], 0
    for number, length in enumerate(lengths):
        first, last = max(start, at), min(stop, at + length)
        if first < last:
            pieces.append((number, first - at, last - at))
        at += length
    return Cut(start, stop, tuple(pieces))
