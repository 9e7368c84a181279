"""An origin near the data, so that squares of data far from zero do not lose digits.

Origins are rounded to a power of two that is small against the data, so that subtracting them is
exact: ties between whole numbers stay ties, and data far from zero lose no digit.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def middle(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle of the range of each column, rounded. Copies of points do not move it."""
    fixed = points.detach()  # no gradient: a choice of coordinates
    low, high = fixed.amin(dim=-2), fixed.amax(dim=-2)
    half = high / 2 - low / 2
    return torch.where(half > 0, _rounded(low + half, half), low)


def median(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the median of each column, rounded. Outliers do not move it.

    Around an origin that is far from most points, those would lose digits.
    """
    fixed = points.detach()
    center = fixed.median(dim=-2, keepdim=True).values
    spread = (fixed - center).abs().median(dim=-2).values
    half = fixed.amax(dim=-2) / 2 - fixed.amin(dim=-2) / 2
    spread = torch.where(spread > 0, spread, half)  # 0 if most numbers are equal
    return torch.where(spread > 0, _rounded(center.squeeze(-2), spread), center.squeeze(-2))


def _rounded(center: Tensor, spread: Tensor) -> Tensor:
    """Return the nearest multiple of the largest power of two in the spread."""
    quantum = torch.exp2(torch.log2(spread).floor())
    return (center / quantum).round() * quantum
