"""New centers from the sums, and the record of the iteration."""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.copies import SIZES


@triton.jit
def smallest(masses, k, TILE: tl.constexpr):
    """The smallest of k masses."""
    found = tl.full((TILE,), 2**62, tl.int64)
    for first in range(0, k, TILE):
        j = first + tl.arange(0, TILE)
        found = tl.minimum(found, tl.load(masses + j, mask=j < k, other=2**62))
    return tl.min(found, 0)


@triton.jit
def lengths(sums, start, held, per_sum, d, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """Norms of the sums of a tile of centers."""
    squares = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = held[:, None] & (f < d)[None, :]
        total = tl.load(sums + start * d + f[None, :], mask=inside, other=0).to(tl.float64)
        total *= per_sum
        squares += tl.sum(total * total, 1)
    return tl.sqrt(squares)


@triton.jit(do_not_specialize=SIZES)
def move_centers(
    sums, masses, units, centers, seen, parts, status, k, d,
    TILE: tl.constexpr, CHUNK: tl.constexpr, DIRECTIONS: tl.constexpr,
):  # fmt: skip
    """Centers move to the means, or to the directions of the sums, unless a cluster is empty.

    parts (2, k): for each cluster mass |c|^2 - 2 sum c, and the squared shift of its center.
    """
    if tl.load(status) != 0:
        return
    if smallest(masses, k, 1024) <= 0:
        return
    per_sum = 1 / tl.load(units + 1)
    center = tl.program_id(0) * TILE + tl.arange(0, TILE)
    held = center < k
    start = center.to(tl.int64)[:, None]
    mass = tl.load(masses + center, mask=held, other=1).to(tl.float64) / tl.load(units + 2)
    divisor = mass
    if DIRECTIONS:
        divisor = lengths(sums, start, held, per_sum, d, TILE, CHUNK)
    squares = tl.zeros((TILE,), tl.float64)
    products = tl.zeros((TILE,), tl.float64)
    shifts = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = held[:, None] & (f < d)[None, :]
        at = start * d + f[None, :]
        total = tl.load(sums + at, mask=inside, other=0).to(tl.float64) * per_sum
        before = tl.load(centers + at, mask=inside, other=0.0)
        c = tl.load(seen + at, mask=inside, other=0.0).to(tl.float64)
        stays = divisor[:, None] == 0
        after = tl.where(stays, before, total / tl.where(stays, 1.0, divisor[:, None]))
        squares += tl.sum(c * c, 1)
        products += tl.sum(total * c, 1)
        shifts += tl.sum((after - before) * (after - before), 1)
        tl.debug_barrier()  # before and c are read by more threads than the one that writes them
        tl.store(centers + at, after, mask=inside)
        tl.store(seen + at, after.to(seen.dtype.element_ty), mask=inside)
    tl.store(parts + center, mass * squares - 2 * products, mask=held)
    tl.store(parts + k + center, shifts, mask=held)


@triton.jit
def add_up(values, count, TILE: tl.constexpr):
    """The sum of values, in an order that depends on nothing but their number."""
    total = tl.zeros((TILE,), tl.float64)
    for first in range(0, count, TILE):
        i = first + tl.arange(0, TILE)
        total += tl.load(values + i, mask=i < count, other=0.0)
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=SIZES)
def finish(
    parts, masses, changed, tolerance, record, status, k, RECORDS: tl.constexpr, TILE: tl.constexpr
):
    """Record of the iteration and the new status, by a single program."""
    if tl.load(status) != 0:
        return
    if smallest(masses, k, TILE) <= 0:
        tl.debug_barrier()  # every thread has read the status
        tl.store(status, 2)
        return
    objective = add_up(parts, k, TILE)
    shift = add_up(parts + k, k, TILE)
    moved = tl.load(changed)
    count = tl.load(status + 1)
    row = count % RECORDS
    settled = (moved == 0) | (shift <= tl.load(tolerance))
    tl.debug_barrier()
    tl.store(record + row * 4, objective)
    tl.store(record + row * 4 + 1, shift)
    tl.store(record + row * 4 + 2, moved.to(tl.float64))
    tl.store(record + row * 4 + 3, 0.0)
    tl.store(status + 1, count + 1)
    tl.store(status, settled.to(tl.int32))
