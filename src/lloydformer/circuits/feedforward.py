"""Networks on single tokens: the paper's quadratic one, products of subspaces, and a free one.

`Quadratic` updates the squared norm of lifted centers (thm:l2-clus ip). `Product` is bilinear: with
it, the stages of a staged recipe compute squared distances and multiply numbers and codes.
"""

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.subspaces import (
    ASSIGNMENT,
    HALF,
    POSITION,
    SQUARED_NORM,
    Space,
    Subspace,
)
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
    shift : float or None, default=None
        For rectified units: d of them, which see the position plus this shift through the codes,
        and no bias. It must be at least minus the least coordinate. The network then writes
        $\sum_i (c_i + b)^2$, which `lloyd_rectified` completes.
    """

    unit: Literal["square", "rectified"] = "square"
    shift: float | None = field(default=None, metadata={"later": True})
    symbol = "N"

    def __post_init__(self) -> None:
        known = self.unit in ("square", "rectified")
        require(known, "unit", self.unit, 'pass "square" or "rectified"')
        if self.shift is not None:
            in_range = self.unit == "rectified" and 0 <= self.shift < math.inf
            require(in_range, "shift", self.shift, "pass 0 or more, for rectified units only")

    @property
    def subspaces(self) -> frozenset[Subspace]:
        if self.shift is not None:
            return frozenset({POSITION, SQUARED_NORM, ASSIGNMENT})
        return frozenset({POSITION, SQUARED_NORM, HALF})

    def build(self, space: Space) -> "QuadraticNetwork":
        """Return the module for tokens of this space."""
        positions = torch.eye(space.dim, dtype=torch.float64)[space.span(POSITION)]  # (d, dim)
        rectified = self.unit == "rectified"
        # [z]_+^2 + [-z]_+^2 = z^2
        inward = torch.cat([positions, -positions]) if rectified else positions
        if self.shift is not None:
            # a center's one-hot code sums to 1, so that this is a bias
            inward = positions.clone()
            inward[:, space.span(ASSIGNMENT)] = self.shift
        outward = torch.zeros(space.dim, len(inward), dtype=torch.float64)
        outward[space.span(SQUARED_NORM)] = 1.0
        bias = torch.zeros(space.dim, dtype=torch.float64)
        if self.shift is None:
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
class Perceptron:
    r"""A network with one hidden layer, to be trained: $W_2 [W_1 z + b_1]_+ + b_2$ (fig:gen-arch).

    $W_2$ and $b_2$ are 0 before training, so that a layer begins as one without a network.

    Parameters
    ----------
    hidden : int
        Number of hidden units.
    """

    hidden: int
    symbol = "MLP"
    # it reads and writes whole tokens, which then depend on where the data lie
    subspaces: ClassVar[frozenset[Subspace]] = frozenset()
    translation_invariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole = isinstance(self.hidden, Integral) and not isinstance(self.hidden, bool)
        require(whole and self.hidden >= 1, "hidden", self.hidden, "pass an integer above 0")

    def build(self, space: Space) -> "PerceptronNetwork":
        """Return the module for tokens of this space."""
        # the same units for every seed: the drawn matrices of the heads make runs differ
        generator, bound = torch.Generator().manual_seed(0), space.dim**-0.5
        inward = torch.empty(self.hidden, space.dim, dtype=torch.float64)
        return PerceptronNetwork(
            inward=inward.uniform_(-bound, bound, generator=generator),
            inward_bias=torch.zeros(self.hidden, dtype=torch.float64),
            outward=torch.zeros(space.dim, self.hidden, dtype=torch.float64),
            bias=torch.zeros(space.dim, dtype=torch.float64),
        )


class PerceptronNetwork(TokenNetwork):
    r"""The module of a perceptron."""

    inward: Tensor
    inward_bias: Tensor
    outward: Tensor
    bias: Tensor

    def forward(self, tokens: Float[Tensor, "*b m dim"]) -> Float[Tensor, "*b m dim"]:
        z = F.linear(tokens, self.inward.to(tokens), self.inward_bias.to(tokens))
        hidden = self.hidden(z.relu())
        return self.output(F.linear(hidden, self.outward.to(tokens), self.bias.to(tokens)))


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
