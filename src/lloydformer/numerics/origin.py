"""An origin near the data, so that squares of data far from zero do not lose digits."""

import torch
from jaxtyping import Float
from torch import Tensor


def middle(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Return the middle of the quartiles of each column, rounded so that subtracting it is exact.

    It is a multiple of the largest power of two in half the distance of the quartiles. Ties
    between whole numbers stay ties, and data far from zero lose no digit. Outliers do not move
    it: around an origin that is far from most points, those would lose digits.
    """
    ordered = points.detach().sort(dim=-2).values  # no gradient: a choice of coordinates
    last = points.shape[-2] - 1
    low, high = ordered[..., last // 4, :], ordered[..., last - last // 4, :]
    half = high / 2 - low / 2
    quantum = torch.exp2(torch.log2(half).floor())
    center = ((low + half) / quantum).round() * quantum
    return torch.where(high > low, center, low)
