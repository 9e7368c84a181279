"""An origin near the data, so that squares of data far from zero do not lose digits."""

import torch
from jaxtyping import Float
from torch import Tensor


def middle(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle of each column, rounded so that subtracting it is exact.

    It is a multiple of the largest power of two in half the column's range. Ties between whole
    numbers stay ties, and data far from zero lose no digit.
    """
    fixed = points.detach()  # no gradient: a choice of coordinates
    low, high = fixed.amin(dim=-2), fixed.amax(dim=-2)
    quantum = torch.exp2(torch.log2((high - low) / 2).floor())
    center = ((low + (high - low) / 2) / quantum).round() * quantum
    return torch.where(high > low, center, low)
