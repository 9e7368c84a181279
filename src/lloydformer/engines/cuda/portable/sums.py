"""Sums of the clusters in fixed point, new centers from them, and distances.

Sums are whole numbers, so that atomic additions are exact in any order, and only rows that
changed their label move between the sums of two clusters.

Loads of what is then overwritten are followed by a barrier: Triton may give the same element to
several threads, and none of them may read it after another has written it.

`lloyd_state.LloydState` describes status, record, sums and masses. units: half_unit, sum_unit,
mass_unit of `DevicePoints`. queued: the numbers of rows for `decide_few`, of rows for
`decide_many`, and of rows that move.
"""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.labels import SIZES, load_points, measure_chunk, push

# 1.5 2^52: float64 has no fractions there, so that adding it rounds to whole numbers.
MAGIC = tl.constexpr(6755399441055744.0)


@triton.jit
def round_to_int(x):
    """Return x, below 2^51 in absolute value, rounded to an int64."""
    return ((x + MAGIC) - MAGIC).to(tl.int64)


@triton.jit
def load_weights(weights, row, inside):
    """Return weights in float64; 1 without weights, 0 outside."""
    if weights is None:
        found = tl.where(inside, 1.0, 0.0).to(tl.float64)
    else:
        found = tl.load(weights + row, mask=inside, other=0.0)
    return found


@triton.jit(do_not_specialize=SIZES)
def collect(labels, assigned, weights, queue, queued, changed, status, n, TILE: tl.constexpr):
    """Queue the rows that move, and count those of them that have a weight."""
    if tl.load(status) != 0:
        return
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = row < n
    label = tl.load(labels + row, mask=inside, other=0)
    moving = inside & (label != tl.load(assigned + row, mask=inside, other=0))
    counted = moving & (load_weights(weights, row, moving) > 0)
    total = tl.sum(counted.to(tl.int64), 0)
    if total > 0:
        tl.atomic_add(changed, total, sem="relaxed")
    push(queue, queued + 2, row, n, moving, 0)


@triton.jit(do_not_specialize=SIZES)
def move(
    rows,
    origin,
    weights,
    units,
    labels,
    assigned,
    sums,
    masses,
    queue,
    queued,
    status,
    d,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Move queued rows between sums.

    For each coordinate one atomic addition to the new cluster, and one to the old.
    """
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
        weight = load_weights(weights, row, moving)
        mass = round_to_int(weight * mass_unit)
        tl.atomic_add(masses + to, mass, mask=moving, sem="relaxed")
        tl.atomic_add(masses + out, -mass, mask=leaving, sem="relaxed")
        for feature in range(0, d, CHUNK):
            f = feature + tl.arange(0, CHUNK)
            held = (f < d)[None, :]
            x = load_points(rows, origin, row.to(tl.int64)[:, None], f, d, moving[:, None] & held)
            x = round_to_int(x * weight[:, None] * sum_unit)
            at = sums + to.to(tl.int64)[:, None] * d + f[None, :]
            tl.atomic_add(at, x, mask=moving[:, None] & held, sem="relaxed")
            at = sums + out.to(tl.int64)[:, None] * d + f[None, :]
            tl.atomic_add(at, -x, mask=leaving[:, None] & held, sem="relaxed")
        tl.debug_barrier()
        tl.store(assigned + row, to, mask=moving)


@triton.jit(do_not_specialize=SIZES)
def move_small(
    rows,
    origin,
    weights,
    units,
    labels,
    assigned,
    sums,
    masses,
    queue,
    queued,
    status,
    k,
    d,
    TILE: tl.constexpr,
    CENTERS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Move queued rows between sums that a program holds in registers: few clusters and features.

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
        weight = load_weights(weights, row, moving)
        held = moving[:, None] & (f < d)[None, :]
        x = load_points(rows, origin, row.to(tl.int64)[:, None], f, d, held)
        x = round_to_int(x * weight[:, None] * sum_unit)[:, None, :]
        mass = round_to_int(weight * mass_unit)[:, None]
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


@triton.jit
def reduce_min(masses, k, TILE: tl.constexpr):
    """Return the smallest of k masses."""
    # 2^62 is above every mass: `DevicePoints` keeps sums and masses below it.
    found = tl.full((TILE,), 2**62, tl.int64)
    for first in range(0, k, TILE):
        j = first + tl.arange(0, TILE)
        found = tl.minimum(found, tl.load(masses + j, mask=j < k, other=2**62))
    return tl.min(found, 0)


@triton.jit
def compute_norms(sums, start, held, per_sum, d, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """Return the norms of the sums of a tile of centers."""
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
    sums,
    masses,
    units,
    centers,
    rounded,
    parts,
    status,
    k,
    d,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    DIRECTIONS: tl.constexpr,
):
    """Move centers to the means, or to the directions of the sums, unless a cluster is empty.

    A center whose sum is zero has no direction and stays. parts (2, k): for each cluster
    mass |c|^2 - 2 sum.c with the old c from rounded (its inertia less the sum of w |x|^2), and the
    squared shift of its center.
    """
    if tl.load(status) != 0:
        return
    if reduce_min(masses, k, 1024) <= 0:
        return
    per_sum = 1 / tl.load(units + 1)
    center = tl.program_id(0) * TILE + tl.arange(0, TILE)
    held = center < k
    start = center.to(tl.int64)[:, None]
    mass = tl.load(masses + center, mask=held, other=1).to(tl.float64) / tl.load(units + 2)
    divisor = mass
    if DIRECTIONS:
        divisor = compute_norms(sums, start, held, per_sum, d, TILE, CHUNK)
    squares = tl.zeros((TILE,), tl.float64)
    products = tl.zeros((TILE,), tl.float64)
    shifts = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = held[:, None] & (f < d)[None, :]
        at = start * d + f[None, :]
        total = tl.load(sums + at, mask=inside, other=0).to(tl.float64) * per_sum
        before = tl.load(centers + at, mask=inside, other=0.0)
        c = tl.load(rounded + at, mask=inside, other=0.0).to(tl.float64)
        stays = divisor[:, None] == 0
        after = tl.where(stays, before, total / tl.where(stays, 1.0, divisor[:, None]))
        squares += tl.sum(c * c, 1)
        products += tl.sum(total * c, 1)
        shifts += tl.sum((after - before) * (after - before), 1)
        tl.debug_barrier()  # before and c are read by more threads than the one that writes them
        tl.store(centers + at, after, mask=inside)
        tl.store(rounded + at, after.to(rounded.dtype.element_ty), mask=inside)
    tl.store(parts + center, mass * squares - 2 * products, mask=held)
    tl.store(parts + k + center, shifts, mask=held)


@triton.jit
def reduce_sum(values, count, TILE: tl.constexpr):
    """Return the sum of values, in an order that depends on nothing but their number."""
    total = tl.zeros((TILE,), tl.float64)
    for first in range(0, count, TILE):
        i = first + tl.arange(0, TILE)
        total += tl.load(values + i, mask=i < count, other=0.0)
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=SIZES)
def finish(
    parts, masses, changed, tolerance, record, status, k, RECORDS: tl.constexpr, TILE: tl.constexpr
):
    """Write the record of the iteration and the new status, by a single program."""
    if tl.load(status) != 0:
        return
    if reduce_min(masses, k, TILE) <= 0:
        tl.debug_barrier()  # every thread has read the status
        tl.store(status, 2)
        return
    objective = reduce_sum(parts, k, TILE)
    shift = reduce_sum(parts + k, k, TILE)
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


@triton.jit(do_not_specialize=SIZES)
def measure(
    rows,
    origin,
    weights,
    rounded,
    labels,
    distances,
    parts,
    n,
    d,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write squared distances to the labels' centers; add up the weighted ones, by program."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = row < n
    label = tl.load(labels + row, mask=inside, other=0)
    squares = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        held = inside[:, None] & (f < d)[None, :]
        x = load_points(rows, origin, row.to(tl.int64)[:, None], f, d, held)
        squares += measure_chunk(x, rounded, label, f, d, held)
    tl.store(distances + row, squares.to(distances.dtype.element_ty), mask=inside)
    weight = load_weights(weights, row, inside)
    tl.store(parts + tl.program_id(0), tl.sum(tl.where(inside, weight * squares, 0.0), 0))


@triton.jit(do_not_specialize=SIZES)
def add_parts(parts, total, count, TILE: tl.constexpr):
    """Write the sum of all parts, by a single program."""
    tl.store(total, reduce_sum(parts, count, TILE))
