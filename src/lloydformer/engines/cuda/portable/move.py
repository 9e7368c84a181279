"""Rows that changed their label move between the sums, which are whole numbers.

Loads of what is then overwritten are followed by a barrier: Triton may give the same element to
several threads, and none of them may read it after another has written it.
"""

import triton
import triton.language as tl

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


@triton.jit
def move(
    rows, origin, weights, units, labels, assigned, sums, masses, changed, status, n, d, n_tiles,
    TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One atomic addition for each coordinate of each row that moves."""
    if tl.load(status) != 0:
        return
    sum_unit = tl.load(units + 1)
    mass_unit = tl.load(units + 2)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n
        label = tl.load(labels + row, mask=inside, other=0)
        old = tl.load(assigned + row, mask=inside, other=0)
        moving = inside & (label != old)
        if tl.max(moving.to(tl.int32), 0) > 0:
            leaving = moving & (old >= 0)
            weight = weights_of(weights, row, moving)
            tl.atomic_add(changed, tl.sum((weight > 0).to(tl.int64), 0), sem="relaxed")
            mass = whole(weight * mass_unit)
            tl.atomic_add(masses + label, mass, mask=moving, sem="relaxed")
            tl.atomic_add(masses + old, -mass, mask=leaving, sem="relaxed")
            for first in range(0, d, CHUNK):
                f = first + tl.arange(0, CHUNK)
                held = (f < d)[None, :]
                x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, moving[:, None] & held)
                x = whole(x * weight[:, None] * sum_unit)
                to = sums + label.to(tl.int64)[:, None] * d + f[None, :]
                tl.atomic_add(to, x, mask=moving[:, None] & held, sem="relaxed")
                out = sums + old.to(tl.int64)[:, None] * d + f[None, :]
                tl.atomic_add(out, -x, mask=leaving[:, None] & held, sem="relaxed")
            tl.debug_barrier()
            tl.store(assigned + row, label, mask=moving)


@triton.jit
def move_small(
    rows, origin, weights, units, labels, assigned, sums, masses, changed, status, n, k, d, n_tiles,
    TILE: tl.constexpr, PART: tl.constexpr, CENTERS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The same for few clusters and features, whose sums a program holds in registers.

    Atomic additions of many rows to few addresses would wait for each other. CENTERS and WIDTH are
    k and d, rounded up. A tile is read in parts of PART rows, each of which has its own sums.
    """
    if tl.load(status) != 0:
        return
    sum_unit = tl.load(units + 1)
    mass_unit = tl.load(units + 2)
    center = tl.arange(0, CENTERS)
    f = tl.arange(0, WIDTH)
    added = tl.zeros((PART, CENTERS, WIDTH), tl.int64)
    added_mass = tl.zeros((PART, CENTERS), tl.int64)
    count = tl.zeros((PART,), tl.int64)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        first_row = tile * TILE
        whole_tile = first_row + tl.arange(0, TILE)
        label = tl.load(labels + whole_tile, mask=whole_tile < n, other=0)
        old = tl.load(assigned + whole_tile, mask=whole_tile < n, other=0)
        if tl.max((label != old).to(tl.int32), 0) > 0:
            for part in range(0, TILE, PART):
                row = first_row + part + tl.arange(0, PART)
                to = tl.load(labels + row, mask=row < n, other=0)
                out = tl.load(assigned + row, mask=row < n, other=0)
                moving = to != out
                weight = weights_of(weights, row, moving)
                count += (weight > 0).to(tl.int64)
                x = centered(
                    rows, origin, row.to(tl.int64)[:, None], f, d,
                    moving[:, None] & (f < d)[None, :],
                )  # fmt: skip
                x = whole(x * weight[:, None] * sum_unit)[:, None, :]
                mass = whole(weight * mass_unit)[:, None]
                comes = moving[:, None] & (to[:, None] == center[None, :])
                goes = moving[:, None] & (out[:, None] == center[None, :])
                added_mass += tl.where(comes, mass, 0) - tl.where(goes, mass, 0)
                added += tl.where(comes[:, :, None], x, 0) - tl.where(goes[:, :, None], x, 0)
            tl.debug_barrier()
            tl.store(assigned + whole_tile, label, mask=whole_tile < n)
    tl.atomic_add(changed, tl.sum(count, 0), sem="relaxed")
    mass = tl.sum(added_mass, 0)
    tl.atomic_add(masses + center, mass, mask=(center < k) & (mass != 0), sem="relaxed")
    x = tl.sum(added, 0)
    held = (center < k)[:, None] & (f < d)[None, :] & (x != 0)
    tl.atomic_add(sums + center[:, None] * d + f[None, :], x, mask=held, sem="relaxed")
