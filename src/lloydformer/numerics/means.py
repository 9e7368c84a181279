"""Weighted means, with a fallback where there is no weight."""

import torch
from jaxtyping import Float
from torch import Tensor


def means_or(
    sums: Float[Tensor, "*b k d"],
    masses: Float[Tensor, "*b k"],
    otherwise: Float[Tensor, "*b k d"],
) -> Float[Tensor, "*b k d"]:
    """Divide the sum of each cluster by its mass; return `otherwise` where the mass is 0.

    The leading axes are a batch of problems. Not meant for gradients: the division by 0 is
    computed and then discarded.
    """
    each = masses.unsqueeze(-1)  # (*b, k, 1)
    return torch.where(each > 0, sums / each, otherwise)
