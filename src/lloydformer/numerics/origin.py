"""An origin near the data, so that squares of data far from zero do not lose digits.

Origins are rounded to a power of two that is small against the data, so that subtracting them is
exact: ties between whole numbers stay ties, and data far from zero lose no digit.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def middle(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle of the range of each column, rounded. Copies of points do not move it."""
    fixed = points.detach()  # no gradient: a choice of coordinates
    low, high = fixed.amin(dim=-2), fixed.amax(dim=-2)
    half = high / 2 - low / 2
    return torch.where(half > 0, _rounded(low + half, half), low)


def middle_of_ends(ends: Float[np.ndarray, "2 d"]) -> Float[np.ndarray, " d"]:
    """`middle` of an array with these smallest and largest numbers: few calls, on the CPU."""
    low, high = ends
    half = high / 2 - low / 2
    quantum = np.ldexp(ends.dtype.type(1), np.frexp(half)[1] - 1)
    return np.where(half > 0, np.round((low + half) / quantum) * quantum, low)


def median(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the median of each column, rounded. Outliers do not move it.

    Around an origin that is far from most points, those would lose digits.
    """
    fixed = points.detach()
    center = _median(fixed)
    spread = _median((fixed - center.unsqueeze(-2)).abs())
    half = fixed.amax(dim=-2) / 2 - fixed.amin(dim=-2) / 2
    spread = torch.where(spread > 0, spread, half)  # 0 if most numbers are equal
    return torch.where(spread > 0, _rounded(center, spread), center)


def _median(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle number of each column, or the mean of the two middle ones."""
    ordered, n = points.sort(dim=-2).values, points.shape[-2]
    return ordered[..., (n - 1) // 2, :] / 2 + ordered[..., n // 2, :] / 2


def _rounded(center: Tensor, spread: Tensor) -> Tensor:
    """Return the nearest multiple of the largest power of two in the spread."""
    quantum = torch.exp2(torch.log2(spread).floor())
    return (center / quantum).round() * quantum
