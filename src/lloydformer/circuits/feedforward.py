"""The quadratic feed-forward network, which updates the squared norm of moved centers."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.subspaces import HALF, POSITION, SQUARED_NORM, Space, Subspace


@runtime_checkable
class FeedForward(Protocol):
    """Protocol of a network that acts on each decoder token separately.

    `symbol` is its sign in equations, `subspaces` are those that it reads or writes.
    """

    symbol: str

    @property
    def subspaces(self) -> frozenset[Subspace]: ...

    def build(self, space: Space) -> "QuadraticNetwork":
        """Return the module for tokens of this space."""
        ...


@dataclass(frozen=True)
class Quadratic:
    r"""Writes $\lVert c \rVert^2$ into `SQUARED_NORM` and -1/2 into `HALF` (thm:l2-clus ip).

    unit: "square" is the appendix's $z^2$ with d hidden units. "rectified" is the main text's
    $[z]_+^2$, here with 2d hidden units, for z and -z, which are right for any data; d are enough
    with a shift that depends on the data (docs/errata.md, 1).
    """

    unit: Literal["square", "rectified"] = "square"
    symbol = "N"

    def __post_init__(self) -> None:
        if self.unit not in ("square", "rectified"):
            raise ValueError(f'unit: found {self.unit!r}; pass "square" or "rectified"')

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset({POSITION, SQUARED_NORM, HALF})

    def build(self, space: Space) -> "QuadraticNetwork":
        """Return the module for tokens of this space."""
        positions = torch.eye(space.dim, dtype=torch.float64)[space.span(POSITION)]  # (d, dim)
        rectified = self.unit == "rectified"
        inward = torch.cat([positions, -positions]) if rectified else positions
        outward = torch.zeros(space.dim, len(inward), dtype=torch.float64)
        outward[space.span(SQUARED_NORM)] = 1.0
        bias = torch.zeros(space.dim, dtype=torch.float64)
        bias[space.span(HALF)] = -0.5
        return QuadraticNetwork(inward, outward, bias, rectified)


class QuadraticNetwork(nn.Module):
    r"""$\mathcal{N}(c) = W_2\, \tau(W_1 c) + b$, with $\tau$ the square, rectified or not."""

    inward: Tensor
    outward: Tensor
    bias: Tensor

    def __init__(self, inward: Tensor, outward: Tensor, bias: Tensor, rectified: bool) -> None:
        super().__init__()
        self.register_buffer("inward", inward)
        self.register_buffer("outward", outward)
        self.register_buffer("bias", bias)
        self.rectified = rectified
        self.hidden = nn.Identity()
        self.output = nn.Identity()

    def forward(self, tokens: Float[Tensor, "*b k dim"]) -> Float[Tensor, "*b k dim"]:
        z = F.linear(tokens, self.inward.to(tokens))  # (k, d) or (k, 2d)
        hidden = self.hidden((z.relu() if self.rectified else z).square())
        return self.output(F.linear(hidden, self.outward.to(tokens), self.bias.to(tokens)))
