"""Copies in float16 for the tensor cores, with the errors of rounding that were actually made.

Coordinates are multiplied by `Points.half_unit`, a power of two. Norms and errors are in that unit
and are upper bounds: computed in float64 and raised by more than float32 can round them down.
"""

import triton
import triton.language as tl

SIZES = ("n", "k", "n_tiles", "count")
"""Arguments that no kernel is compiled for: any number of points and centers uses the same."""
LARGEST = tl.constexpr(65504.0)
"""The largest number of float16. What lies outside is clamped; the error that is kept says so."""
UPWARD = tl.constexpr(1.000001)


@triton.jit
def round_to_half(x):
    """x in float64 as float16, and the error."""
    bounded = tl.minimum(tl.maximum(x, -LARGEST), LARGEST)
    half = bounded.to(tl.float32).to(tl.float16)
    return half, x - half.to(tl.float64)


@triton.jit(do_not_specialize=SIZES)
def prepare(
    rows, origin, units, half, norms, residuals, n, d, padded,
    TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Copy of (row - origin) * half_unit (n, padded), and for each row |x| and |x - copy|."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    start = row.to(tl.int64)[:, None]
    unit = tl.load(units)
    squares = tl.zeros((TILE,), tl.float64)
    errors = tl.zeros((TILE,), tl.float64)
    for first in range(0, padded, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = (row < n)[:, None] & (f < d)[None, :]
        x = tl.load(rows + start * d + f[None, :], mask=inside, other=0.0)
        x -= tl.load(origin + f, mask=f < d, other=0.0)[None, :]
        scaled = tl.where(inside, x.to(tl.float64) * unit, 0.0)
        copy, error = round_to_half(scaled)
        written = (row < n)[:, None] & (f < padded)[None, :]
        tl.store(half + start * padded + f[None, :], copy, mask=written)
        squares += tl.sum(scaled * scaled, 1)
        errors += tl.sum(error * error, 1)
    tl.store(norms + row, (tl.sqrt(squares) * UPWARD).to(tl.float32), mask=row < n)
    tl.store(residuals + row, (tl.sqrt(errors) * UPWARD).to(tl.float32), mask=row < n)


@triton.jit(do_not_specialize=SIZES)
def copy_centers(
    seen, units, half, half_squares, norms, residuals, queued, changed, status, k, d, padded,
    TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The same for centers, and |c|^2 / 2; also sets the counters of an iteration to 0.

    Rows from k on are centers that no point is near to: `half` is 0 there and `half_squares` huge.
    """
    if tl.load(status) != 0:
        return
    center = tl.program_id(0) * TILE + tl.arange(0, TILE)
    start = center.to(tl.int64)[:, None]
    unit = tl.load(units)
    squares = tl.zeros((TILE,), tl.float64)
    errors = tl.zeros((TILE,), tl.float64)
    for first in range(0, padded, CHUNK):
        f = first + tl.arange(0, CHUNK)
        inside = (center < k)[:, None] & (f < d)[None, :]
        c = tl.load(seen + start * d + f[None, :], mask=inside, other=0.0)
        scaled = c.to(tl.float64) * unit
        copy, error = round_to_half(scaled)
        tl.store(half + start * padded + f[None, :], copy, mask=(f < padded)[None, :])
        squares += tl.sum(scaled * scaled, 1)
        errors += tl.sum(error * error, 1)
    halved = tl.where(center < k, squares * 0.5, 3e38).to(tl.float32)
    tl.store(half_squares + center, halved)
    tl.store(norms + center, (tl.sqrt(squares) * UPWARD).to(tl.float32))
    tl.store(residuals + center, (tl.sqrt(errors) * UPWARD).to(tl.float32))
    if tl.program_id(0) == 0:
        tl.store(queued, 0)
        tl.store(queued + 1, 0)
        tl.store(queued + 2, 0)
        tl.store(changed, 0)
