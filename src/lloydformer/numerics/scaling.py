"""Changes of origin and scale: an origin near the data, unit vectors, units of weights.

Squares of data far from zero lose digits, so rows are taken relative to an origin. Origins are
rounded to a power of two that is small against the data: subtracting them is then exact, and ties
between whole numbers stay ties. Weights are divided by powers of two, which is exact as well.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

_TINY = np.finfo(np.float64).tiny  # smaller numbers have fewer digits
_SMALLEST = np.nextafter(0.0, 1.0)

Unit = Float[np.ndarray, "*b"] | float

# Rows of the sample whose median is the origin. The median of 63 numbers is outside of the middle
# half of a column once in 20,000 columns; sorting them takes 20 µs for 10 columns. It is odd, so
# that a median is one of the numbers, and no rounding depends on who computes it.
_SAMPLE = 63


def middle(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle of the range of each column, rounded. Copies of points do not move it."""
    fixed = points.detach()  # no gradient: a choice of coordinates
    low, high = fixed.amin(dim=-2), fixed.amax(dim=-2)
    half = high / 2 - low / 2
    return torch.where(half > 0, _round_to_spread(low + half, half), low)


def sample_numbers(n_rows: int) -> Int[np.ndarray, " m"]:
    """Return the numbers of the rows whose `sampled_origin` is the origin of all rows.

    They depend on the number of rows alone, so every split of the rows has the same origin.
    """
    m = min(n_rows, _SAMPLE)
    return np.arange(m) * n_rows // m


def sampled_origin(rows: Float[np.ndarray, "m d"]) -> Float[np.ndarray, " d"]:
    """Return the median of each column of a sample, rounded to its spread.

    A few far rows do not move it. The middle of the range would be far from nearly all rows if
    one of them is far away: less such an origin, float32 rows lose the digits in which they differ.
    The spread is the median distance to the median.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # rows that are refused later
        at = (len(rows) - 1) // 2
        center = np.sort(rows, axis=0)[at]
        spread = np.sort(np.abs(rows - center), axis=0)[at]
        quantum = np.ldexp(rows.dtype.type(1), np.frexp(spread)[1] - 1)
        quantum = np.maximum(quantum, np.spacing(np.abs(center)))  # the quotient stays finite
        return np.where(spread > 0, np.rint(center / quantum) * quantum, center)


def median(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the median of each column, rounded. Outliers do not move it.

    Around an origin that is far from most points, those would lose digits.
    """
    fixed = points.detach()
    center = _median(fixed)
    spread = _median((fixed - center.unsqueeze(-2)).abs())
    half = fixed.amax(dim=-2) / 2 - fixed.amin(dim=-2) / 2
    spread = torch.where(spread > 0, spread, half)  # 0 if most numbers are equal
    return torch.where(spread > 0, _round_to_spread(center, spread), center)


def fill_by_medians(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
    """Return points whose missing values (NaN) are the medians of their columns, or 0."""
    centers = points.detach().nanmedian(dim=-2, keepdim=True).values.nan_to_num(nan=0.0)
    return torch.where(points.isnan(), centers, points)


def _median(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle number of each column, or the mean of the two middle ones."""
    ordered, n = points.sort(dim=-2).values, points.shape[-2]
    # by tensors of indices: torch.export must not ask whether (n - 1) // 2 is below n
    low, high = (
        ordered.index_select(-2, torch.full((1,), i, device=points.device)).squeeze(-2)
        for i in ((n - 1) // 2, n // 2)
    )
    return low / 2 + high / 2


def _round_to_spread(center: Tensor, spread: Tensor) -> Tensor:
    """Return the nearest multiple of the largest power of two in the spread."""
    quantum = torch.exp2(torch.log2(spread).floor())
    return (center / quantum).round() * quantum


def directions(name: str, rows: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m d"]:
    """Return rows in float64 as unit vectors; raise `ValueError` for a row of zeros.

    name: the argument, for the error.
    """
    norms = rows.norm(dim=-1, keepdim=True)
    # beyond these norms the squares overflow, or lose digits, in float64 (1e-308 to 1e308)
    if not bool(((norms > 1e-150) & (norms < 1e150)).all()):
        largest = rows.abs().amax(dim=-1, keepdim=True)
        if bool((largest == 0).any()):
            raise ValueError(f"{name}: found a row of zeros, which has no direction; use another")
        rows = rows / largest
        norms = rows.norm(dim=-1, keepdim=True)
    return rows / norms


def in_units(
    name: str, weights: Float[np.ndarray, "*b n"]
) -> tuple[Float[np.ndarray, "*b n"], Unit]:
    """Divide weights by a power of two, so that the largest is at least 1 and below 2.

    The division is exact, so sums that are linear in the weights are the same to the last bit, in
    the other unit. It raises `ValueError` for weights whose ratio float64 cannot hold.

    Parameters
    ----------
    name : str
        The argument, for the error.
    weights : ndarray of shape (*b, n)
        In float64, finite, not negative; for each problem of a batch.

    Returns
    -------
    weights : ndarray of shape (*b, n)
        In the new unit. Positive weights stay positive.
    unit : float, or ndarray of shape (*b,)
        The power of two; one for each problem.
    """
    largest = weights.max(axis=-1)
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1
    unit = np.ldexp(1.0, exponent)
    if not exponent.any():
        return weights, unit
    scaled = np.ldexp(weights, -exponent[..., None])
    if (exponent > 0).any():
        lost = (weights >= _TINY) & (scaled < _TINY)
        if lost.any():
            raise _ratio_error(name, weights[lost][0], largest.max())
        # weights that were below _TINY already may vanish; they stay positive
        np.maximum(scaled, _SMALLEST, where=weights > 0, out=scaled)
    return scaled, unit


def unit_exponent(largest: float) -> int:
    """Return the exponent of the power of two in whose unit the largest weight is 1 to 2."""
    return int(np.frexp(largest)[1]) - 1


def divide_by_unit(weights: Float[np.ndarray, " n"], exponent: int) -> Float[np.ndarray, " n"]:
    """Return a copy of the weights divided by 2**exponent. Positive weights stay positive."""
    scaled = np.ldexp(weights, -exponent)
    return np.maximum(scaled, _SMALLEST, where=weights > 0, out=scaled)


def check_ratio(name: str, smallest: float, largest: float) -> None:
    """Raise `ValueError` if the smallest weight above 0 is lost in the unit of the largest."""
    if smallest >= _TINY > np.ldexp(smallest, -unit_exponent(largest)):
        raise _ratio_error(name, smallest, largest)


def _ratio_error(name: str, smallest: float, largest: float) -> ValueError:
    return ValueError(
        f"{name}: found {smallest:.2g} beside {largest:.2g}, a ratio that float64 cannot hold; "
        "leave out such small weights, or set them to 0"
    )


def overflow_error(unit: float) -> ValueError:
    """Return the error for weights in this unit whose sums with squared distances overflow."""
    most = min(2.0 * unit, np.finfo(np.float64).max)
    return ValueError(
        f"sample_weight: found weights up to {most:.2g}; float64 cannot hold their sum with "
        "squared distances; divide them by their maximum"
    )
