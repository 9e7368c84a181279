"""Rows that changed their label move between the sums, which are whole numbers.

Loads of what is then overwritten are followed by a barrier: Triton may give the same element to
several threads, and none of them may read it after another has written it.
"""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.assign import push
from lloydformer.engines.cuda.portable.copies import SIZES
from lloydformer.engines.cuda.portable.decide import centered

MAGIC = tl.constexpr(6755399441055744.0)
"""1.5 * 2^52: float64 has no fractions there, so that adding it rounds to whole numbers."""


@triton.jit
def whole(x):
    """x, below 2^51 in absolute value, rounded to an int64."""
    return ((x + MAGIC) - MAGIC).to(tl.int64)


@triton.jit
def weights_of(weights, row, inside):
    """Weights in float64; 1 without weights, 0 outside."""
    if weights is None:
        found = tl.where(inside, 1.0, 0.0).to(tl.float64)
    else:
        found = tl.load(weights + row, mask=inside, other=0.0)
    return found


@triton.jit(do_not_specialize=SIZES)
def collect(
    labels, assigned, weights, queue, queued, changed, status, n, TILE: tl.constexpr
):  # fmt: skip
    """Queue the rows that move, and count those of them that have a weight."""
    if tl.load(status) != 0:
        return
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = row < n
    label = tl.load(labels + row, mask=inside, other=0)
    moving = inside & (label != tl.load(assigned + row, mask=inside, other=0))
    counted = moving & (weights_of(weights, row, moving) > 0)
    total = tl.sum(counted.to(tl.int64), 0)
    if total > 0:
        tl.atomic_add(changed, total, sem="relaxed")
    push(queue, queued + 2, row, n, moving, 0)


@triton.jit(do_not_specialize=SIZES)
def move(
    rows, origin, weights, units, labels, assigned, sums, masses, queue, queued, status, d,
    TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One atomic addition for each coordinate of each queued row."""
    if tl.load(status) != 0:
        return
    sum_unit = tl.load(units + 1)
    mass_unit = tl.load(units + 2)
    count = tl.load(queued + 2)
    for first in range(tl.program_id(0) * TILE, count, tl.num_programs(0) * TILE):
        place = first + tl.arange(0, TILE)
        moving = place < count
        row = tl.load(queue + place, mask=moving, other=0)
        to = tl.load(labels + row, mask=moving, other=0)
        out = tl.load(assigned + row, mask=moving, other=-1)
        leaving = moving & (out >= 0)
        weight = weights_of(weights, row, moving)
        mass = whole(weight * mass_unit)
        tl.atomic_add(masses + to, mass, mask=moving, sem="relaxed")
        tl.atomic_add(masses + out, -mass, mask=leaving, sem="relaxed")
        for feature in range(0, d, CHUNK):
            f = feature + tl.arange(0, CHUNK)
            held = (f < d)[None, :]
            x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, moving[:, None] & held)
            x = whole(x * weight[:, None] * sum_unit)
            at = sums + to.to(tl.int64)[:, None] * d + f[None, :]
            tl.atomic_add(at, x, mask=moving[:, None] & held, sem="relaxed")
            at = sums + out.to(tl.int64)[:, None] * d + f[None, :]
            tl.atomic_add(at, -x, mask=leaving[:, None] & held, sem="relaxed")
        tl.debug_barrier()
        tl.store(assigned + row, to, mask=moving)


@triton.jit(do_not_specialize=SIZES)
def move_small(
    rows, origin, weights, units, labels, assigned, sums, masses, queue, queued, status, k, d,
    TILE: tl.constexpr, CENTERS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The same for few clusters and features, whose sums a program holds in registers.

    Atomic additions of many rows to few addresses would wait for each other. CENTERS and WIDTH are
    k and d, rounded up; each row of a tile has its own sums.
    """
    if tl.load(status) != 0:
        return
    sum_unit = tl.load(units + 1)
    mass_unit = tl.load(units + 2)
    count = tl.load(queued + 2)
    center = tl.arange(0, CENTERS)
    f = tl.arange(0, WIDTH)
    sums_added = tl.zeros((TILE, CENTERS, WIDTH), tl.int64)
    masses_added = tl.zeros((TILE, CENTERS), tl.int64)
    for first in range(tl.program_id(0) * TILE, count, tl.num_programs(0) * TILE):
        place = first + tl.arange(0, TILE)
        moving = place < count
        row = tl.load(queue + place, mask=moving, other=0)
        to = tl.load(labels + row, mask=moving, other=-1)
        out = tl.load(assigned + row, mask=moving, other=-1)
        weight = weights_of(weights, row, moving)
        held = moving[:, None] & (f < d)[None, :]
        x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, held)
        x = whole(x * weight[:, None] * sum_unit)[:, None, :]
        mass = whole(weight * mass_unit)[:, None]
        comes = to[:, None] == center[None, :]
        goes = out[:, None] == center[None, :]
        masses_added += tl.where(comes, mass, 0) - tl.where(goes, mass, 0)
        sums_added += tl.where(comes[:, :, None], x, 0) - tl.where(goes[:, :, None], x, 0)
        tl.debug_barrier()
        tl.store(assigned + row, to, mask=moving)
    mass = tl.sum(masses_added, 0)
    tl.atomic_add(masses + center, mass, mask=(center < k) & (mass != 0), sem="relaxed")
    x = tl.sum(sums_added, 0)
    held = (center < k)[:, None] & (f < d)[None, :] & (x != 0)
    tl.atomic_add(sums + center[:, None] * d + f[None, :], x, mask=held, sem="relaxed")
