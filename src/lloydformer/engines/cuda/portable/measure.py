"""Squared distances of rows to the centers of their labels, and what they add up to."""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.copies import SIZES
from lloydformer.engines.cuda.portable.decide import centered, squares_to
from lloydformer.engines.cuda.portable.move import weights_of, whole
from lloydformer.engines.cuda.portable.update import add_up


@triton.jit(do_not_specialize=SIZES)
def measure(
    rows, origin, weights, units, seen, labels, distances, masses, parts, n, k, d,
    TILE: tl.constexpr, CHUNK: tl.constexpr, CENTERS: tl.constexpr,
):  # fmt: skip
    """A program a tile. With CENTERS >= k above 0, masses are added up in the program first."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = row < n
    label = tl.load(labels + row, mask=inside, other=0)
    squares = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        held = inside[:, None] & (f < d)[None, :]
        x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, held)
        squares += squares_to(x, seen, label, f, d, held)
    tl.store(distances + row, squares.to(distances.dtype.element_ty), mask=inside)
    weight = weights_of(weights, row, inside)
    tl.store(parts + tl.program_id(0), tl.sum(tl.where(inside, weight * squares, 0.0), 0))
    mass = whole(weight * tl.load(units + 2))
    if CENTERS > 0:
        center = tl.arange(0, CENTERS)
        own = label[:, None] == center[None, :]
        total = tl.sum(tl.where(own, mass[:, None], 0), 0)
        tl.atomic_add(masses + center, total, mask=center < k, sem="relaxed")
    else:
        tl.atomic_add(masses + label, mass, mask=inside, sem="relaxed")


@triton.jit(do_not_specialize=SIZES)
def add_parts(parts, total, count, TILE: tl.constexpr):
    """The sum of all parts, by a single program."""
    tl.store(total, add_up(parts, count, TILE))
