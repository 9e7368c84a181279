"""The bilinear network: products of the subspaces of a token."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.subspaces import Space, Subspace


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
        return frozenset({self.subspace} | ({self.less} if self.less else set()))

    def __str__(self) -> str:
        return (
            f"({self.subspace.symbol} − {self.less.symbol})" if self.less else self.subspace.symbol
        )


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
        outward[space.span(self.target)] = self.coefficient * _spread(
            space.size(self.target), width
        )
        return ProductNetwork(
            self.left.matrix(space, width), self.right.matrix(space, width), outward
        )

    def __str__(self) -> str:
        sign = "−" if self.coefficient < 0 else ""
        return f"I[{self.target.symbol}←{sign}{self.left}·{self.right}]"


def squared(target: Subspace, of: Subspace, less: Subspace, coefficient: float = 1.0) -> Product:
    """Return the product that computes the squared distance of two positions in a token."""
    return Product(target, Difference(of, less), Difference(of, less), coefficient)


def times(target: Subspace, left: Subspace, right: Subspace) -> Product:
    """Return the product of two subspaces."""
    return Product(target, Difference(left), Difference(right))


class ProductNetwork(nn.Module):
    r"""The module of a product: $W (L z \circ R z)$."""

    left: Tensor
    right: Tensor
    outward: Tensor

    def __init__(self, left: Tensor, right: Tensor, outward: Tensor) -> None:
        super().__init__()
        self.register_buffer("left", left)
        self.register_buffer("right", right)
        self.register_buffer("outward", outward)
        self.hidden = nn.Identity()
        self.output = nn.Identity()

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
