"""Exact labels from float16 scores: copies, scores with an error bound, close calls in float64.

The score of a center is x.c - |c|^2 / 2; the nearest center has the largest. With x^ and c^ the
copies in float16, X = |x| + |x - x^| and C = |c| + |c - c^|,

    |x.c - x^.c^| <= |x - x^| C + X |c - c^|

and the tensor cores add up with an error of at most (d + 16) 2^-23 X C. Each product is split by
2 a b <= a^2 + b^2, so that the error of a score is at most row(x) + center(c): `bound_row` and
`bound_center`, for any number as their ratio, best one near |c| / |x|.
One far row or center does not change the bounds of others.

Scores are lifted by center(c). If b has the largest lifted score, that of the nearest center is at
least as large, less 2 row(x) + 2 center(b) (`ScoreError` in kernels/prelude.cuh has the proof).
Where the second best is lower, the label is certain. Other rows go to a queue, and are decided by
differences in float64: so labels are those of float64.
"""

import triton
import triton.language as tl

# Arguments that kernels are not specialised for: Triton would compile a variant for sizes that are
# 1 and for those that 16 divides, and any number of points and centers can share one.
SIZES = ("n", "k", "n_tiles", "count")
# The largest number of float16. Numbers beyond are clamped; the residual includes what is lost.
LARGEST = tl.constexpr(65504.0)
# Norms and residuals are upper bounds: this is more than float32 rounds down (2^-24).
UPWARD = tl.constexpr(1.000001)
# A score below all others; squares of far centers are cut there.
NOTHING = tl.constexpr(-3e38)
# Tensor cores may truncate: an addition is wrong by one unit of float32's 24 bits, not by half.
EPSILON = tl.constexpr(2.0**-23)
# Relative error of a float16 copy of normally distributed numbers; any number would give a bound.
LOSS = tl.constexpr(2e-4)
# Absolute part of the bound: for numbers that float32 would round to 0.
TINY = tl.constexpr(1e-30)


@triton.jit
def round_to_half(x):
    """Return x, in float64, as float16, and the error."""
    bounded = tl.minimum(tl.maximum(x, -LARGEST), LARGEST)
    half = bounded.to(tl.float32).to(tl.float16)
    return half, x - half.to(tl.float64)


@triton.jit
def load_points(rows, origin, start, f, d, inside):
    """Return row - origin in the precision of the rows, then in float64; 0 outside.

    origin: None if there is none.
    """
    x = tl.load(rows + start * d + f[None, :], mask=inside, other=0.0)
    if origin is not None:
        x -= tl.load(origin + f, mask=f < d, other=0.0)[None, :]
    return tl.where(inside, x.to(tl.float64), 0.0)


@triton.jit
def write_half(rows, origin, units, half, row, held, stored, d, padded, CHUNK: tl.constexpr):
    """Write copies (row - origin) * half_unit of a tile; return |x|^2 and |x - copy|^2.

    held: the rows that exist; the others are 0. stored: the rows of the copy that are written.
    """
    start = row.to(tl.int64)[:, None]
    unit = tl.load(units)
    squares = tl.zeros(row.shape, tl.float64)
    errors = tl.zeros(row.shape, tl.float64)
    for first in range(0, padded, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = held[:, None] & (f < d)[None, :]
        scaled = load_points(rows, origin, start, f, d, inside) * unit
        copy, error = round_to_half(scaled)
        written = stored[:, None] & (f < padded)[None, :]
        tl.store(half + start * padded + f[None, :], copy, mask=written)
        squares += tl.sum(scaled * scaled, 1)
        errors += tl.sum(error * error, 1)
    return squares, errors


@triton.jit(do_not_specialize=SIZES)
def prepare(
    rows,
    origin,
    units,
    half,
    norms,
    residuals,
    n,
    d,
    padded,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write copies (row - origin) * half_unit (n, padded), and for each row |x| and |x - copy|."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    held = row < n
    squares, errors = write_half(rows, origin, units, half, row, held, held, d, padded, CHUNK)
    tl.store(norms + row, (tl.sqrt(squares) * UPWARD).to(tl.float32), mask=row < n)
    tl.store(residuals + row, (tl.sqrt(errors) * UPWARD).to(tl.float32), mask=row < n)


@triton.jit
def bound_row(norm, residual, ratio, padded, CODES: tl.constexpr):
    """Return row(x), from |x| and |x - x^|: with r = `ratio` and e for what is rounded later,

        r (|x - x^|^2 / LOSS + (LOSS + e) X^2) / 2

    A product of X and C loses `padded` + 16 units of the last bit where products are added, `CODES`
    where the last bits hold a column, and 4 in the last additions. 0.5001 in place of 0.5 covers
    the rounding of the bound itself.
    """
    size = norm + residual
    loss = LOSS + (padded + 20 + CODES) * EPSILON
    return 0.5001 * ratio * (residual * residual / LOSS + loss * size * size) + TINY


@triton.jit
def bound_center(norm, residual, ratio, padded, CODES: tl.constexpr):
    """Return center(c): the same with 1 / r, and e C^2 / 2 for what |c|^2 / 2 loses."""
    size = norm + residual
    rounded = 0.5001 * (padded + 20 + CODES) * EPSILON * size * size
    return bound_row(norm, residual, 1.0 / ratio, padded, CODES) + rounded


@triton.jit(do_not_specialize=SIZES)
def copy_centers(
    rounded,
    units,
    center_half,
    lowered,
    center_errors,
    queued,
    changed,
    status,
    k,
    d,
    padded,
    ratio,
    CODES: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write copies of the centers, center(c), and |c|^2 / 2 - center(c); set counters to 0.

    Rows from k on are centers that no point is near to: the copy is 0 there and `lowered` huge. A
    center that is too far away for float32 gets the highest score and no limit of its error: then
    all rows are decided in float64. The counters of an iteration are reset here because this is its
    first kernel.
    """
    if tl.load(status) != 0:
        return
    center = tl.program_id(0) * TILE + tl.arange(0, TILE)
    squares, errors = write_half(
        rounded, None, units, center_half, center, center < k, center >= 0, d, padded, CHUNK
    )
    bound = bound_center(tl.sqrt(squares), tl.sqrt(errors), ratio, padded, CODES)
    held = (bound < 1e36) & (squares < 1e36)
    below = tl.where(held, squares * 0.5 - bound, -1e38)
    tl.store(lowered + center, tl.where(center < k, below, 3e38).to(tl.float32))
    # Twice 1.5e38 does not overflow, and no center in range has a score below 1e38 - 3e38.
    tl.store(center_errors + center, tl.where(held, bound * UPWARD, 1.5e38).to(tl.float32))
    if tl.program_id(0) == 0:
        tl.store(queued, 0)
        tl.store(queued + 1, 0)
        tl.store(queued + 2, 0)
        tl.store(changed, 0)


@triton.jit
def push(queue, queued, places, n, chosen, LAST: tl.constexpr):
    """Append the chosen places to the queue: from its start, or from its end backwards.

    One atomic addition per program: places within it follow from a running sum. Their order among
    programs changes from run to run, but each row is decided on its own.
    """
    count = chosen.to(tl.int32)
    total = tl.sum(count, 0)
    if total > 0:
        first = tl.atomic_add(queued + LAST, total, sem="relaxed")
        position = first + tl.cumsum(count, 0) - 1
        if LAST == 1:
            position = n - 1 - position
        tl.store(queue + position, places, mask=chosen)


@triton.jit
def multiply_chunks(
    half,
    center_half,
    start,
    center,
    f,
    inside,
    padded,
    TILE: tl.constexpr,
    CENTERS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Return x^.c^ of a tile, the features in chunks."""
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
    half,
    norms,
    residuals,
    center_half,
    lowered,
    center_errors,
    status,
    labels,
    others,
    queue,
    queued,
    n,
    k,
    padded,
    ratio,
    n_tiles,
    TILE: tl.constexpr,
    CENTERS: tl.constexpr,
    CHUNK: tl.constexpr,
    WHOLE: tl.constexpr,
    ONE: tl.constexpr,
):
    """Label the rows; those that the bound leaves open go to the queue.

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
    f = tl.arange(0, CHUNK)
    q = tl.arange(0, CENTERS)
    within = f < padded
    if WHOLE and ONE:
        only = tl.load(
            center_half + q[None, :] * padded + f[:, None], mask=within[:, None], other=0.0
        )
        only_lowered = tl.load(lowered + q)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n
        start = row.to(tl.int64)[:, None]
        if WHOLE:
            x = tl.load(
                half + start * padded + f[None, :],
                mask=inside[:, None] & within[None, :],
                other=0.0,
            )
        columns = tl.full((TILE, CENTERS), NOTHING, tl.float32)
        first_score = tl.full((TILE,), NOTHING, tl.float32)
        second_score = tl.full((TILE,), NOTHING, tl.float32)
        third_score = tl.full((TILE,), NOTHING, tl.float32)
        first_tile = tl.zeros((TILE,), tl.int32)
        second_tile = tl.zeros((TILE,), tl.int32)
        for u in range(1 if ONE else tl.cdiv(k, CENTERS)):
            center = u * CENTERS + q
            if WHOLE and ONE:
                scores = tl.dot(x, only) - only_lowered[None, :]
            elif WHOLE:
                c = tl.load(
                    center_half + center[None, :] * padded + f[:, None],
                    mask=within[:, None],
                    other=0.0,
                )
                scores = tl.dot(x, c) - tl.load(lowered + center)[None, :]
            else:
                scores = multiply_chunks(
                    half, center_half, start, center, f, inside, padded, TILE, CENTERS, CHUNK
                )
                scores -= tl.load(lowered + center)[None, :]
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
        most = tl.max(columns, 1)
        first_column = most.to(tl.int32, bitcast=True) & (CENTERS - 1)
        label = first_tile * CENTERS + first_column
        columns = tl.where(q[None, :] == first_column[:, None], NOTHING, columns)
        second = tl.max(columns, 1)
        second_column = second.to(tl.int32, bitcast=True) & (CENTERS - 1)
        # If two scores differ in no bit but those of their columns, the best one may be in either
        # column of the first tile; if a third column is close as well, all centers are compared.
        bits = most.to(tl.int32, bitcast=True) ^ second.to(tl.int32, bitcast=True)
        other = tl.where((bits & -CENTERS) == 0, first_tile * CENTERS + second_column, label)
        center_error = tl.load(center_errors + label)
        center_error = tl.maximum(center_error, tl.load(center_errors + other))
        norm = tl.load(norms + row, mask=inside, other=0.0)
        residual = tl.load(residuals + row, mask=inside, other=0.0)
        error = bound_row(norm, residual, ratio, padded, CENTERS)
        threshold = first_score - 2 * (error + center_error)
        near = tl.sum((columns >= threshold[:, None]).to(tl.int32), 1)
        # If centers are far out of the range of float16, scores or the threshold may be infinite or
        # NaN, or no score may be above NOTHING. Both comparisons are then false: all is decided in
        # float64.
        certain = (second < threshold) & (second_score < threshold)
        few = (near <= 1) & (third_score < threshold)
        second_column = tl.where(second >= threshold, second_column, first_column)
        second_tile = tl.where(second_score >= threshold, second_tile, first_tile)
        tl.store(labels + row, label, mask=inside)
        is_open = inside & (certain == 0)
        tl.store(others + row, second_tile * CENTERS + second_column, mask=is_open)
        push(queue, queued, row, n, is_open & few, 0)
        push(queue, queued, row, n, is_open & (few == 0), 1)


@triton.jit
def measure_chunk(x, rounded, center, f, d, inside):
    """Return a chunk's part of the squared distance of each row to one center of its own."""
    at = rounded + center.to(tl.int64)[:, None] * d + f[None, :]
    away = x - tl.load(at, mask=inside, other=0.0).to(tl.float64)
    return tl.sum(tl.where(inside, away * away, 0.0), 1)


@triton.jit
def pick_nearer(nearest, label, squares, center, k):
    """Return the nearer of two centers, the first of equal ones."""
    better = (squares < nearest) | ((squares == nearest) & (center < label))
    better = better & (center < k)
    return tl.where(better, squares, nearest), tl.where(better, center, label)


@triton.jit(do_not_specialize=SIZES)
def decide_few(
    rows,
    origin,
    rounded,
    status,
    labels,
    others,
    queue,
    queued,
    k,
    d,
    CENTERS: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Label rows at the start of the queue by the nearest of four centers, the first of equals.

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
            x = load_points(rows, origin, row.to(tl.int64)[:, None], f, d, held)
            to_a += measure_chunk(x, rounded, a, f, d, held & (a < k)[:, None])
            to_b += measure_chunk(x, rounded, b, f, d, held & (b < k)[:, None])
            to_c += measure_chunk(x, rounded, c, f, d, held & (c < k)[:, None])
            to_e += measure_chunk(x, rounded, e, f, d, held & (e < k)[:, None])
        nearest = tl.full((TILE,), float("inf"), tl.float64)
        label = tl.zeros((TILE,), tl.int32) + k
        nearest, label = pick_nearer(nearest, label, to_a, a, k)
        nearest, label = pick_nearer(nearest, label, to_b, b, k)
        nearest, label = pick_nearer(nearest, label, to_c, c, k)
        nearest, label = pick_nearer(nearest, label, to_e, e, k)
        tl.debug_barrier()  # labels are read by more threads than the one that writes them
        tl.store(labels + row, tl.minimum(label, k - 1), mask=inside)


@triton.jit(do_not_specialize=SIZES)
def decide_many(
    rows,
    origin,
    rounded,
    status,
    labels,
    queue,
    queued,
    n,
    k,
    d,
    TILE: tl.constexpr,
    CENTERS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Label rows at the end of the queue by the nearest of all centers, the first of equals."""
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
                x = load_points(rows, origin, row.to(tl.int64)[:, None], f, d, held)
                at = rounded + center.to(tl.int64)[:, None] * d + f[None, :]
                c = tl.load(at, mask=(center < k)[:, None] & (f < d)[None, :], other=0.0)
                away = x[:, None, :] - c.to(tl.float64)[None, :, :]
                squares += tl.sum(away * away, 2)
            squares = tl.where((center < k)[None, :], squares, float("inf"))
            least = tl.min(squares, 1)
            which = tl.min(tl.where(squares == least[:, None], center[None, :], k), 1)
            label = tl.where(least < nearest, which, label)
            nearest = tl.minimum(nearest, least)
        tl.store(labels + row, tl.minimum(label, k - 1), mask=inside)
