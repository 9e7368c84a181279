"""Normalisation of the position subspace: what keeps centers on the unit sphere."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Norm(Protocol):
    """Acts on positions only; codes pass by."""

    symbol: str
    zero_sum: bool

    def __call__(self, positions: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class RMSNorm:
    r"""$z / \mathrm{rms}(z) / \sqrt d = z / \lVert z \rVert$ (rem:lnorm-rmsnorm).

    The gain $1/\sqrt d$, which the remark leaves out, is what makes it a projection onto the
    unit sphere. A zero vector has no direction: 0/0.
    """

    epsilon: float = 0.0
    symbol = "RMS"
    zero_sum = False

    def __call__(self, positions: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        d = positions.shape[-1]
        mean_square = positions.square().mean(dim=-1, keepdim=True)
        return positions / (mean_square + self.epsilon).sqrt() / d**0.5


@dataclass(frozen=True)
class LayerNorm:
    r"""$(z - \mathbb{E} z) / \sqrt{\mathrm{Var} z + \epsilon} / \sqrt d$ (def:lnorm).

    For zero-sum vectors and $\epsilon = 0$ this is $z / \lVert z \rVert$ (lem lnorm), so the
    points must have coordinates that sum to zero; `zero_sum` makes them so.
    """

    epsilon: float = 0.0
    symbol = "LN"
    zero_sum = True

    def __call__(self, positions: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        d = positions.shape[-1]
        centered = positions - positions.mean(dim=-1, keepdim=True)
        variance = centered.square().mean(dim=-1, keepdim=True)
        return centered / (variance + self.epsilon).sqrt() / d**0.5


def zero_sum(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n e"]:
    """An isometry of R^d into the zero-sum vectors of R^(d+1), so that LayerNorm can be used.

    Row j of its matrix is e_1 + ... + e_j - j e_{j+1}, divided by its length: orthonormal, and
    each sums to zero.
    """
    d = points.shape[-1]
    steps = torch.ones(d, d + 1, dtype=torch.float64).tril()
    steps.diagonal(offset=1).copy_(-torch.arange(1, d + 1))
    basis = steps / steps.norm(dim=1, keepdim=True)
    return points @ basis.to(points)
