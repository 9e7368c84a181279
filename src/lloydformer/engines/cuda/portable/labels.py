"""Nearest centers by tensor cores, certified by a bound of the error.

The score of a center is x.c - |c|^2 / 2; the nearest center has the largest. With x^ and c^ the
copies in float16, cm = max|c| and cr = max|c - c^|,

    |x.c - x^.c^| <= |x - x^| (cm + cr) + |x| cr

and the tensor cores add up with an error of at most (d + 16) 2^-23 (|x| + |x - x^|) (cm + cr).
"""

import triton
import triton.language as tl

from lloydformer.engines.cuda.portable.copies import SIZES

NOTHING = tl.constexpr(-3e38)
EPSILON = tl.constexpr(2.0**-23)
TINY = tl.constexpr(1e-30)
"""Absolute part of the bound: for numbers that float32 would round to 0."""


@triton.jit
def largest(values, k, TILE: tl.constexpr):
    """The largest of k values that are not negative."""
    found = tl.zeros((TILE,), tl.float32)
    for first in range(0, k, TILE):
        j = first + tl.arange(0, TILE)
        found = tl.maximum(found, tl.load(values + j, mask=j < k, other=0.0))
    return tl.max(found, 0)


@triton.jit
def score_error(norm, residual, center_norm, center_residual, padded, TILE: tl.constexpr):
    """Bound of the error of a score for each row, of which the last bits may hold a column."""
    reach = center_norm + center_residual
    product = (norm + residual) * reach
    size = product + 0.5 * center_norm * center_norm
    error = residual * reach + norm * center_residual + (padded + 16) * EPSILON * product
    return (error + (TILE + 4) * EPSILON * size) * 1.0001 + TINY


@triton.jit
def push(queue, queued, places, n, chosen, LAST: tl.constexpr):
    """Append the chosen places to the queue: from its start, or from its end backwards."""
    count = chosen.to(tl.int32)
    total = tl.sum(count, 0)
    if total > 0:
        first = tl.atomic_add(queued + LAST, total, sem="relaxed")
        position = first + tl.cumsum(count, 0) - 1
        if LAST == 1:
            position = n - 1 - position
        tl.store(queue + position, places, mask=chosen)


@triton.jit
def scores_by_chunks(
    half, center_half, start, center, f, inside, padded,
    TILE: tl.constexpr, CENTERS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """x^.c^ of a tile, the features in chunks."""
    products = tl.zeros((TILE, CENTERS), tl.float32)
    x_at = half + start * padded + f[None, :]
    c_at = center_half + center[None, :] * padded + f[:, None]
    for first in range(0, padded, CHUNK):
        within = f < padded - first
        x = tl.load(x_at + first, mask=inside[:, None] & within[None, :], other=0.0)
        c = tl.load(c_at + first, mask=within[:, None], other=0.0)
        products = tl.dot(x, c, products)
    return products


@triton.jit(do_not_specialize=SIZES)
def assign(
    half, norms, residuals, center_half, half_squares, center_norms, center_residuals, status,
    labels, others, queue, queued, n, k, padded, n_tiles,
    TILE: tl.constexpr, CENTERS: tl.constexpr, CHUNK: tl.constexpr,
    WHOLE: tl.constexpr, ONE: tl.constexpr,
):  # fmt: skip
    """Labels; rows that the bound leaves open go to the queue.

    Center number u * CENTERS + q is in tile u and column q. The largest score of each column and
    of each tile are kept: two operations a score. Every center but the best is in another tile or
    in another column than the best, so the two largest of both kinds tell how near the second best
    is. If no more than two tiles and two columns come near, at most four centers do: `others` then
    holds the second tile and the second column as one number, and the row is queued at the start.
    All other open rows are queued at the end.

    WHOLE: a chunk holds all features. ONE: a tile holds all centers and is read once.
    """
    if tl.load(status) != 0:
        return
    center_norm = largest(center_norms, k, 1024)
    center_residual = largest(center_residuals, k, 1024)
    f = tl.arange(0, CHUNK)
    q = tl.arange(0, CENTERS)
    within = f < padded
    if WHOLE and ONE:
        only = tl.load(
            center_half + q[None, :] * padded + f[:, None], mask=within[:, None], other=0.0
        )
        only_squares = tl.load(half_squares + q)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n
        start = row.to(tl.int64)[:, None]
        if WHOLE:
            x = tl.load(
                half + start * padded + f[None, :],
                mask=inside[:, None] & within[None, :], other=0.0,
            )  # fmt: skip
        columns = tl.full((TILE, CENTERS), NOTHING, tl.float32)
        first_score = tl.full((TILE,), NOTHING, tl.float32)
        second_score = tl.full((TILE,), NOTHING, tl.float32)
        third_score = tl.full((TILE,), NOTHING, tl.float32)
        first_tile = tl.zeros((TILE,), tl.int32)
        second_tile = tl.zeros((TILE,), tl.int32)
        for u in range(1 if ONE else tl.cdiv(k, CENTERS)):
            center = u * CENTERS + q
            if WHOLE and ONE:
                scores = tl.dot(x, only) - only_squares[None, :]
            elif WHOLE:
                c = tl.load(
                    center_half + center[None, :] * padded + f[:, None],
                    mask=within[:, None], other=0.0,
                )  # fmt: skip
                scores = tl.dot(x, c) - tl.load(half_squares + center)[None, :]
            else:
                scores = scores_by_chunks(
                    half, center_half, start, center, f, inside, padded, TILE, CENTERS, CHUNK
                )
                scores -= tl.load(half_squares + center)[None, :]
            columns = tl.maximum(columns, scores)
            best = tl.max(scores, 1)
            third_score = tl.maximum(third_score, tl.minimum(second_score, best))
            second_tile = tl.where(
                best > first_score, first_tile, tl.where(best > second_score, u, second_tile)
            )
            second_score = tl.maximum(second_score, tl.minimum(first_score, best))
            first_tile = tl.where(best > first_score, u, first_tile)
            first_score = tl.maximum(first_score, best)
        # The last bits of a score become its column, so that one maximum finds both. Not those of
        # 0, which would become a number that some GPUs flush to 0 again.
        columns = tl.where(tl.abs(columns) < 0.1 * TINY, 0.1 * TINY, columns)
        bits = columns.to(tl.int32, bitcast=True) & -CENTERS
        columns = (bits | q[None, :]).to(tl.float32, bitcast=True)
        first_column = tl.max(columns, 1).to(tl.int32, bitcast=True) & (CENTERS - 1)
        norm = tl.load(norms + row, mask=inside, other=0.0)
        residual = tl.load(residuals + row, mask=inside, other=0.0)
        error = score_error(norm, residual, center_norm, center_residual, padded, CENTERS)
        threshold = first_score - 2 * error
        columns = tl.where(q[None, :] == first_column[:, None], NOTHING, columns)
        second = tl.max(columns, 1)
        second_column = second.to(tl.int32, bitcast=True) & (CENTERS - 1)
        near = tl.sum((columns >= threshold[:, None]).to(tl.int32), 1)
        # If centers are far out of the range of float16, scores or the threshold may be infinite or
        # NaN, or no score may be above NOTHING. Both comparisons are then false: all is decided in
        # float64.
        certain = (second < threshold) & (second_score < threshold)
        few = (near <= 1) & (third_score < threshold)
        second_column = tl.where(second >= threshold, second_column, first_column)
        second_tile = tl.where(second_score >= threshold, second_tile, first_tile)
        tl.store(labels + row, first_tile * CENTERS + first_column, mask=inside)
        is_open = inside & (certain == 0)
        tl.store(others + row, second_tile * CENTERS + second_column, mask=is_open)
        push(queue, queued, row, n, is_open & few, 0)
        push(queue, queued, row, n, is_open & (few == 0), 1)
