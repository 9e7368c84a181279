"""Networks on single tokens: the paper's quadratic one, and products of subspaces.

`Quadratic` updates the squared norm of lifted centers (thm:l2-clus ip). `Product` is bilinear: with
it, the stages of a staged recipe compute squared distances and multiply numbers and codes.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.subspaces import HALF, POSITION, SQUARED_NORM, Space, Subspace
from lloydformer.numerics.checks import require


@runtime_checkable
class FeedForward(Protocol):
    """Protocol of a network that acts on each decoder token separately.

    `symbol` is its sign in equations, `subspaces` are those that it reads or writes.
    """

    symbol: str

    @property
    def subspaces(self) -> frozenset[Subspace]: ...

    def build(self, space: Space) -> nn.Module:
        """Return the module for tokens of this space."""
        ...


@dataclass(frozen=True)
class Quadratic:
    r"""Writes $\lVert c \rVert^2$ into `SQUARED_NORM` and -1/2 into `HALF` (thm:l2-clus ip).

    Parameters
    ----------
    unit : {"square", "rectified"}
        "square" is the appendix's $z^2$ with d hidden units. "rectified" is the main text's
        $[z]_+^2$, here with 2d hidden units, for z and -z, which are right for any data; d are
        enough with a shift that depends on the data (docs/errata.md, 1).
    """

    unit: Literal["square", "rectified"] = "square"
    symbol = "N"

    def __post_init__(self) -> None:
        known = self.unit in ("square", "rectified")
        require(known, "unit", self.unit, 'pass "square" or "rectified"')

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset({POSITION, SQUARED_NORM, HALF})

    def build(self, space: Space) -> "QuadraticNetwork":
        """Return the module for tokens of this space."""
        positions = torch.eye(space.dim, dtype=torch.float64)[space.span(POSITION)]  # (d, dim)
        rectified = self.unit == "rectified"
        # [z]_+^2 + [-z]_+^2 = z^2
        inward = torch.cat([positions, -positions]) if rectified else positions
        outward = torch.zeros(space.dim, len(inward), dtype=torch.float64)
        outward[space.span(SQUARED_NORM)] = 1.0
        bias = torch.zeros(space.dim, dtype=torch.float64)
        bias[space.span(HALF)] = -0.5
        return QuadraticNetwork(rectified, inward=inward, outward=outward, bias=bias)


class TokenNetwork(nn.Module):
    """Base of the networks: their weights by name, and the hook points `hidden` and `output`."""

    def __init__(self, **weights: Tensor) -> None:
        super().__init__()
        for name, weight in weights.items():
            self.register_buffer(name, weight.clone())  # no view: torch.export saves whole tensors
        self.hidden, self.output = nn.Identity(), nn.Identity()


class QuadraticNetwork(TokenNetwork):
    r"""$\mathcal{N}(c) = W_2\, \tau(W_1 c) + b$, with $\tau$ the square, rectified or not."""

    inward: Tensor
    outward: Tensor
    bias: Tensor

    def __init__(self, rectified: bool, **weights: Tensor) -> None:
        super().__init__(**weights)
        self.rectified = rectified

    def forward(self, tokens: Float[Tensor, "*b k dim"]) -> Float[Tensor, "*b k dim"]:
        hidden = self.hidden(self.activate(tokens))
        return self.output(F.linear(hidden, self.outward.to(tokens), self.bias.to(tokens)))

    def activate(self, tokens: Float[Tensor, "*b k dim"]) -> Float[Tensor, "*b k hidden"]:
        """Return the hidden units for these tokens."""
        z = F.linear(tokens, self.inward.to(tokens))  # (k, d) or (k, 2d)
        return (z.relu() if self.rectified else z).square()


@dataclass(frozen=True)
class Difference:
    """A subspace, or the difference `subspace - less` of two of the same size."""

    subspace: Subspace
    less: Subspace | None = None

    def matrix(self, space: Space, width: int) -> Float[Tensor, "width dim"]:
        """Return the matrix that reads the difference; a number is repeated `width` times."""
        matrix = torch.zeros(width, space.dim, dtype=torch.float64)
        for subspace, sign in ((self.subspace, 1.0), (self.less, -1.0)):
            if subspace is not None:
                matrix[:, space.span(subspace)] += sign * _spread(width, space.size(subspace))
        return matrix

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset(filter(None, (self.subspace, self.less)))

    def __str__(self) -> str:
        symbol = self.subspace.symbol
        return f"({symbol} − {self.less.symbol})" if self.less else symbol


@dataclass(frozen=True)
class Product:
    r"""Adds $\pm L z \circ R z$ to a subspace, or the sum of its entries if that has dimension 1.

    The paper's quadratic network is the product of a position with itself. A number times a code
    is a code; the inner product of two positions is a number.
    """

    target: Subspace
    left: Difference
    right: Difference
    coefficient: float = 1.0

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset({self.target}) | self.left.subspaces | self.right.subspaces

    def build(self, space: Space) -> "ProductNetwork":
        """Return the module for tokens of this space."""
        width = max(space.size(f.subspace) for f in (self.left, self.right))
        outward = torch.zeros(space.dim, width, dtype=torch.float64)
        target = _spread(space.size(self.target), width)
        outward[space.span(self.target)] = self.coefficient * target
        left, right = (factor.matrix(space, width) for factor in (self.left, self.right))
        return ProductNetwork(left=left, right=right, outward=outward)

    def __str__(self) -> str:
        sign = "−" if self.coefficient < 0 else ""
        return f"I[{self.target.symbol}←{sign}{self.left}·{self.right}]"


def squared_distance(
    target: Subspace, of: Subspace, less: Subspace, coefficient: float = 1.0
) -> Product:
    """Return the product that computes the squared distance of two positions in a token."""
    return Product(target, Difference(of, less), Difference(of, less), coefficient)


def times(target: Subspace, left: Subspace, right: Subspace) -> Product:
    """Return the product of two subspaces."""
    return Product(target, Difference(left), Difference(right))


class ProductNetwork(TokenNetwork):
    r"""The module of a product: $W (L z \circ R z)$."""

    left: Tensor
    right: Tensor
    outward: Tensor

    def forward(self, tokens: Float[Tensor, "*b m dim"]) -> Float[Tensor, "*b m dim"]:
        left, right = (F.linear(tokens, w.to(tokens)) for w in (self.left, self.right))
        hidden = self.hidden(left * right)
        return self.output(F.linear(hidden, self.outward.to(tokens)))


def _spread(rows: int, columns: int) -> Float[Tensor, "rows columns"]:
    """Return the identity, or ones if one of the sizes is 1."""
    if rows == columns:
        return torch.eye(rows, dtype=torch.float64)
    if 1 not in (rows, columns):
        raise ValueError(f"subspaces: found sizes {rows} and {columns}; they must be equal, or 1")
    return torch.ones(rows, columns, dtype=torch.float64)
