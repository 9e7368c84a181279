"""Soft-max shares by their logarithms, for shares that are too small for a float."""

import torch
from jaxtyping import Float
from torch import Tensor

LOWEST = -1e300
"""Logarithms of shares below this count as this: all points then weigh the same for a center."""


def log_shares(
    scores: Float[Tensor, "*b n k"], inverse_temperature: float
) -> tuple[Float[Tensor, "*b n k"], Float[Tensor, "*b n"]]:
    """Return the logarithms of soft-max shares, and -1/gamma log sum exp(-gamma score)."""
    least = scores.amin(dim=-1, keepdim=True)
    exponents = -inverse_temperature * (scores - least)
    mass = exponents.logsumexp(dim=-1, keepdim=True)
    free = (least - mass / inverse_temperature).squeeze(-1)
    return (exponents - mass).clamp(min=LOWEST), free


def scaled_shares(
    logs: Float[Tensor, "*b n k"], weights: Float[Tensor, "*b n"] | None
) -> tuple[Float[Tensor, "*b k"], Float[Tensor, "*b n k"]]:
    """Return the largest logarithm of each cluster, and w times the shares over its exponential.

    Shares can be too small for a float where their ratios are not. Points of weight 0 do not count.
    """
    if weights is not None:
        logs = logs.masked_fill((weights == 0).unsqueeze(-1), -torch.inf)
    level = logs.amax(dim=-2).clamp(min=2 * LOWEST)  # finite if no point has a weight
    shares = (logs - level.unsqueeze(-2)).exp()
    return level, shares if weights is None else shares * weights.unsqueeze(-1)
