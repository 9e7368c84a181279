"""Named subspaces of the token space: `POSITION`, never `[:, :d]`.

A token is a direct sum of subspaces. Nothing outside of this module knows at which index one
of them begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Subspace:
    """A named summand of the token space; `symbol` is its sign in equations."""

    name: str
    symbol: str

    def __repr__(self) -> str:
        return self.name.upper()


POSITION = Subspace("position", "x")
"""Where the point or center is: d dimensions."""
SQUARED_NORM = Subspace("squared_norm", "q")
"""The squared norm of the position: 1 dimension (def:lifted)."""
HALF = Subspace("half", "h")
"""The constant -1/2: 1 dimension (def:lifted)."""
ASSIGNMENT = Subspace("assignment", "y")
"""Points: the cluster they belong to. Centers: which cluster they are."""
AFFINITY = Subspace("affinity", "ŷ")
"""Scores of a point for each center, written down for a later head: k dimensions (eq rob CXY)."""
ONE = Subspace("one", "1")
"""The constant 1, by which a token asks or answers whatever the other one is: 1 dimension."""
NAME = Subspace("name", "n")
"""Centers: which one they are, where `ASSIGNMENT` is left to what belongs to them."""
ABSENT = Subspace("absent", "a")
"""1 in a spare token that is no center yet, and in a center that has vanished: 1 dimension."""
NEAREST = Subspace("nearest", "r")
"""Points: how far their nearest center is. Centers: 1, with which they ask. 1 dimension."""
SECOND = Subspace("second", "s")
"""The same of the second nearest center."""


def belonging(head: int) -> Subspace:
    """Points: how much each is a center's, as one of several heads sees it: k dimensions."""
    return Subspace(f"belonging_{head}", f"p{head}")


def log_belonging(head: int) -> Subspace:
    """The logarithm of that."""
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
        return tuple(subspace for subspace, _ in self.sizes)

    def size(self, subspace: Subspace) -> int:
        return self.span(subspace).stop - self.span(subspace).start

    def span(self, subspace: Subspace) -> slice:
        """The indices that the subspace takes up."""
        start = 0
        for candidate, size in self.sizes:
            if candidate == subspace:
                return slice(start, start + size)
            start += size
        raise ValueError(f"subspace: {subspace!r} is not among {list(self.subspaces)}")

    def read(self, tokens: Float[Tensor, "*b m dim"], subspace: Subspace) -> Tensor:
        """The part of each token that lies in the subspace."""
        return tokens[..., self.span(subspace)]

    def write(
        self, tokens: Float[Tensor, "*b m dim"], subspace: Subspace, part: Tensor
    ) -> Float[Tensor, "*b m dim"]:
        """The tokens with one part replaced; the given ones are not changed."""
        return self.assemble({s: part if s == subspace else self.read(tokens, s)
                              for s in self.subspaces})  # fmt: skip

    def assemble(self, parts: Mapping[Subspace, Tensor]) -> Tensor:
        """Tokens from their parts, each of shape (..., m, size of its subspace)."""
        return torch.cat([parts[subspace] for subspace in self.subspaces], dim=-1)
