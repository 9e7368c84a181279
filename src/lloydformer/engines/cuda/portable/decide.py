"""Rows that tensor cores could not decide: squared distances by differences, in float64."""

import triton
import triton.language as tl


@triton.jit
def centered(rows, origin, start, f, d, inside):
    """row - origin in the precision of the rows, then in float64; 0 outside."""
    x = tl.load(rows + start * d + f[None, :], mask=inside, other=0.0)
    x -= tl.load(origin + f, mask=f < d, other=0.0)[None, :]
    return tl.where(inside, x.to(tl.float64), 0.0)


@triton.jit
def own_squares(rows, origin, seen, row, center, valid, d, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """Squared distance of each row to one center of its own."""
    squares = tl.zeros((TILE,), tl.float64)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = valid[:, None] & (f < d)[None, :]
        x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, inside)
        at = seen + center.to(tl.int64)[:, None] * d + f[None, :]
        x -= tl.load(at, mask=inside, other=0.0).to(tl.float64)
        squares += tl.sum(x * x, 1)
    return squares


@triton.jit
def decide_few(
    rows, origin, seen, status, labels, others, queue, queued, k, d,
    CENTERS: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Rows at the start of the queue: the nearest of four centers, the first of equal ones.

    The four are all pairs of the tiles and the columns of `labels` and `others`.
    """
    if tl.load(status) != 0:
        return
    count = tl.load(queued)
    for first in range(tl.program_id(0) * TILE, count, tl.num_programs(0) * TILE):
        place = first + tl.arange(0, TILE)
        inside = place < count
        row = tl.load(queue + place, mask=inside, other=0)
        a = tl.load(labels + row, mask=inside, other=0)
        b = tl.load(others + row, mask=inside, other=0)
        nearest = tl.full((TILE,), float("inf"), tl.float64)
        label = tl.full((TILE,), 0, tl.int32) + k
        for i in tl.static_range(4):
            tile = a if i % 2 == 0 else b
            column = a if i < 2 else b
            center = tile - tile % CENTERS + column % CENTERS
            valid = inside & (center < k)
            found = own_squares(rows, origin, seen, row, center, valid, d, TILE, CHUNK)
            better = (found < nearest) | ((found == nearest) & (center < label))
            better = better & valid
            nearest = tl.where(better, found, nearest)
            label = tl.where(better, center, label)
        tl.debug_barrier()  # labels are read by more threads than the one that writes them
        tl.store(labels + row, tl.minimum(label, k - 1), mask=inside)


@triton.jit
def decide_many(
    rows, origin, seen, status, labels, queue, queued, n, k, d,
    TILE: tl.constexpr, CENTERS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Rows at the end of the queue: the nearest of all centers, the first of equal ones."""
    if tl.load(status) != 0:
        return
    count = tl.load(queued + 1)
    for first in range(tl.program_id(0) * TILE, count, tl.num_programs(0) * TILE):
        place = first + tl.arange(0, TILE)
        inside = place < count
        row = tl.load(queue + n - 1 - place, mask=inside, other=0)
        nearest = tl.full((TILE,), float("inf"), tl.float64)
        label = tl.zeros((TILE,), tl.int32)
        for tile in range(0, k, CENTERS):
            center = tile + tl.arange(0, CENTERS)
            squares = tl.zeros((TILE, CENTERS), tl.float64)
            for feature in range(0, d, CHUNK):
                f = feature + tl.arange(0, CHUNK)
                held = inside[:, None] & (f < d)[None, :]
                x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, held)
                at = seen + center.to(tl.int64)[:, None] * d + f[None, :]
                c = tl.load(at, mask=(center < k)[:, None] & (f < d)[None, :], other=0.0)
                away = x[:, None, :] - c.to(tl.float64)[None, :, :]
                squares += tl.sum(away * away, 2)
            squares = tl.where((center < k)[None, :], squares, float("inf"))
            least = tl.min(squares, 1)
            which = tl.min(tl.where(squares == least[:, None], center[None, :], k), 1)
            label = tl.where(least < nearest, which, label)
            nearest = tl.minimum(nearest, least)
        tl.store(labels + row, tl.minimum(label, k - 1), mask=inside)
