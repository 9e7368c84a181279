"""Rows that tensor cores could not decide: squared distances by differences, in float64."""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.copies import SIZES


@triton.jit
def centered(rows, origin, start, f, d, inside):
    """row - origin in the precision of the rows, then in float64; 0 outside."""
    x = tl.load(rows + start * d + f[None, :], mask=inside, other=0.0)
    x -= tl.load(origin + f, mask=f < d, other=0.0)[None, :]
    return tl.where(inside, x.to(tl.float64), 0.0)


@triton.jit
def squares_to(x, seen, center, f, d, inside):
    """A chunk's part of the squared distance of each row to one center of its own."""
    at = seen + center.to(tl.int64)[:, None] * d + f[None, :]
    away = x - tl.load(at, mask=inside, other=0.0).to(tl.float64)
    return tl.sum(tl.where(inside, away * away, 0.0), 1)


@triton.jit
def nearer(nearest, label, squares, center, k):
    """The nearer of two centers, the first of equal ones."""
    better = (squares < nearest) | ((squares == nearest) & (center < label))
    better = better & (center < k)
    return tl.where(better, squares, nearest), tl.where(better, center, label)


@triton.jit(do_not_specialize=SIZES)
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
        c = a - a % CENTERS + b % CENTERS
        e = b - b % CENTERS + a % CENTERS
        to_a = tl.zeros((TILE,), tl.float64)
        to_b = tl.zeros((TILE,), tl.float64)
        to_c = tl.zeros((TILE,), tl.float64)
        to_e = tl.zeros((TILE,), tl.float64)
        for feature in range(0, d, CHUNK):
            f = feature + tl.arange(0, CHUNK)
            held = inside[:, None] & (f < d)[None, :]
            x = centered(rows, origin, row.to(tl.int64)[:, None], f, d, held)
            to_a += squares_to(x, seen, a, f, d, held & (a < k)[:, None])
            to_b += squares_to(x, seen, b, f, d, held & (b < k)[:, None])
            to_c += squares_to(x, seen, c, f, d, held & (c < k)[:, None])
            to_e += squares_to(x, seen, e, f, d, held & (e < k)[:, None])
        nearest = tl.full((TILE,), float("inf"), tl.float64)
        label = tl.zeros((TILE,), tl.int32) + k
        nearest, label = nearer(nearest, label, to_a, a, k)
        nearest, label = nearer(nearest, label, to_b, b, k)
        nearest, label = nearer(nearest, label, to_c, c, k)
        nearest, label = nearer(nearest, label, to_e, e, k)
        tl.debug_barrier()  # labels are read by more threads than the one that writes them
        tl.store(labels + row, tl.minimum(label, k - 1), mask=inside)


@triton.jit(do_not_specialize=SIZES)
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
