"""Attention scores: how similar a projected query and a projected key are."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.distances import live_columns, squared_distances


@runtime_checkable
class Score(Protocol):
    """Protocol of a score of every query with every key; larger is better."""

    @property
    def symbol(self) -> str: ...

    def __call__(self, queries: Tensor, keys: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Euclidean:
    r"""Euclidean score $-\lVert q - k \rVert^2$, the paper's $\mathcal{A}_2$ (eq:attned-update)."""

    symbol = "ℓ2"

    def __call__(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        return -squared_distances(queries, keys)

    def rounding(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        """Return an upper bound of each score's rounding error.

        Squaring and adding d differences is right to (d + 2) eps of the distance. Queries and
        keys are rounded themselves, keys are means: moving them by a few eps of their length
        changes the score by the second term.
        """
        squares = squared_distances(queries, keys)
        terms = int(live_columns(queries, keys).sum()) + 2
        lengths = queries.norm(dim=-1).unsqueeze(-1) + keys.norm(dim=-1).unsqueeze(-2)
        return torch.finfo(keys.dtype).eps * (terms * squares + 8 * squares.sqrt() * lengths)


@dataclass(frozen=True)
class Scaled:
    r"""Another score divided by $\sqrt{d_{emb}}$, the number of dimensions of a query."""

    score: Score

    @property
    def symbol(self) -> str:
        return f"{self.score.symbol}/√"

    def __call__(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        return self.score(queries, keys) / queries.shape[-1] ** 0.5

    def rounding(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        """Return an upper bound of each score's rounding error."""
        return rounding_error(self.score, queries, keys) / queries.shape[-1] ** 0.5


@dataclass(frozen=True)
class DotProduct:
    r"""Dot-product score $\langle q, k \rangle$, the usual attention (eq:attn-def)."""

    symbol = "⟨,⟩"

    def __call__(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        return queries @ keys.mT

    def rounding(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        """Return an upper bound of each score's rounding error: (d + 8) eps of its terms."""
        terms = int(live_columns(queries, keys).sum()) + 8
        return terms * torch.finfo(keys.dtype).eps * (queries.abs() @ keys.abs().mT)


def rounding_error(
    score: Score, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b q m"]:
    """Return an upper bound of each score's rounding error, from the numbers compared.

    It is the score's own `rounding`. A score without this method is taken to be made of squares
    and products of its numbers.
    """
    own = getattr(score, "rounding", None)
    if own is not None:
        bound: Tensor = own(queries, keys)
        return bound
    squares = queries.square().sum(-1, keepdim=True) + keys.square().sum(-1).unsqueeze(-2)
    return (queries.shape[-1] + 8) * torch.finfo(keys.dtype).eps * squares
