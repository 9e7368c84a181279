"""Named subspaces of the token space: `POSITION`, never `[:, :d]`.

A token is a direct sum of subspaces. No other module uses the indices at which they begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Subspace:
    """A named part of the token space; `symbol` is its sign in equations."""

    name: str
    symbol: str

    def __repr__(self) -> str:
        return self.name.upper()


# The position of the point or center: d dimensions.
POSITION = Subspace("position", "x")
# The squared norm of the position: 1 dimension (def:lifted).
SQUARED_NORM = Subspace("squared_norm", "q")
# The constant -1/2: 1 dimension (def:lifted).
HALF = Subspace("half", "h")
# Points: the code of their cluster. Centers: their own code. k dimensions if codes are one-hot.
ASSIGNMENT = Subspace("assignment", "y")
# Scores of a point for each center, stored for a later head: k dimensions (eq rob CXY).
AFFINITY = Subspace("affinity", "ŷ")
# The constant 1, as query or key that matches every token: 1 dimension.
ONE = Subspace("one", "1")
# Centers: their own code, if `ASSIGNMENT` is used for the points that belong to them.
NAME = Subspace("name", "n")
# 1 in a spare token that is not yet a center, and in a removed center: 1 dimension.
ABSENT = Subspace("absent", "a")
# Points: log distance of the nearest center. Centers: 1, for their query. 1 dimension.
NEAREST = Subspace("nearest", "r")
# As NEAREST, for the second nearest center.
SECOND = Subspace("second", "s")
# The second part of the statistic of a point, or its mean over the points of a component: squares
# of the columns, their products, or the squared norm.
MOMENT = Subspace("moment", "M")
# Components of a mixture: the mean assignment of all points. k dimensions.
SHARES = Subspace("shares", "ρ")
# Components: their own weight, one of the shares. 1 dimension.
WEIGHT = Subspace("weight", "w")
# Components: variances or the upper triangle of the covariance matrix; as many as MOMENT.
COVARIANCE = Subspace("covariance", "S")
# Components: the natural parameters that belong to position, MOMENT and ONE of a point. The dot
# product with these is the logarithm of weight times density. d, as many as MOMENT, and 1.
LINEAR = Subspace("linear", "η")
QUADRATIC = Subspace("quadratic", "Λ")
CONSTANT = Subspace("constant", "κ")
# Points: 1 where a value is observed and 0 where it is missing, times the factor of the point. d
# dimensions.
OBSERVED = Subspace("observed", "m")
# Centers: the means of the values and of OBSERVED over their points. d dimensions each.
TOTAL = Subspace("total", "s")
COUNT = Subspace("count", "n")


def belonging(head: int) -> Subspace:
    """Return the subspace of the points' soft assignment by one of several heads: k dimensions."""
    return Subspace(f"belonging_{head}", f"p{head}")


def log_belonging(head: int) -> Subspace:
    """Return the subspace of the logarithm of `belonging(head)`: k dimensions."""
    return Subspace(f"log_belonging_{head}", f"l{head}")


@dataclass(frozen=True)
class Space:
    """A token space: an ordered direct sum of subspaces with their dimensions."""

    sizes: tuple[tuple[Subspace, int], ...]

    @property
    def dim(self) -> int:
        """The embedding dimension, d_emb."""
        return sum(size for _, size in self.sizes)

    @property
    def subspaces(self) -> tuple[Subspace, ...]:
        """The subspaces in order."""
        return tuple(subspace for subspace, _ in self.sizes)

    def size(self, subspace: Subspace) -> int:
        """Return the dimension of the subspace."""
        return self.span(subspace).stop - self.span(subspace).start

    def span(self, subspace: Subspace) -> slice:
        """Return the indices of the subspace."""
        start = 0
        for candidate, size in self.sizes:
            if candidate == subspace:
                return slice(start, start + size)
            start += size
        raise ValueError(f"subspace: {subspace!r} is not among {list(self.subspaces)}")

    def read(self, tokens: Float[Tensor, "*b m dim"], subspace: Subspace) -> Tensor:
        """Return the part of each token that lies in the subspace."""
        return tokens[..., self.span(subspace)]

    def write(
        self, tokens: Float[Tensor, "*b m dim"], subspace: Subspace, part: Tensor
    ) -> Float[Tensor, "*b m dim"]:
        """Return new tokens with one part replaced."""
        parts = {s: part if s == subspace else self.read(tokens, s) for s in self.subspaces}
        return self.assemble(parts)

    def assemble(self, parts: Mapping[Subspace, Tensor]) -> Tensor:
        """Return tokens from their parts, each of shape (..., m, size of its subspace)."""
        return torch.cat([parts[subspace] for subspace in self.subspaces], dim=-1)
