"""Attention scores: how similar a projected query and a projected key are."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.clusters import squared_distances


@runtime_checkable
class Score(Protocol):
    """Protocol of a score of every query with every key; larger is better."""

    @property
    def symbol(self) -> str:
        """The sign of the score in tables and equations."""
        ...

    def __call__(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (..., q, m) of queries (..., q, d) and keys (..., m, d)."""
        ...


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
        keys are rounded themselves, and keys are means of up to n queries, off by some sqrt(n)
        eps of their length: this changes the score by the second term.
        """
        squares = squared_distances(queries, keys)
        lengths = queries.norm(dim=-1).unsqueeze(-1) + keys.norm(dim=-1).unsqueeze(-2)
        moved = (8 + queries.shape[-2] ** 0.5) * squares.sqrt() * lengths
        return torch.finfo(keys.dtype).eps * ((_terms(queries, keys) + 2) * squares + moved)


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
        """Return an upper bound of each score's rounding error, a multiple of its terms."""
        factor = _terms(queries, keys) + 8 + queries.shape[-2] ** 0.5
        return factor * torch.finfo(keys.dtype).eps * (queries.abs() @ keys.abs().mT)


def rounding_error(
    score: Score, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b q m"]:
    """Return an upper bound of each score's rounding error, from the numbers compared.

    It is the score's own `rounding`. A score without this method is taken to be a sum of one term
    for each column, all of one sign.
    """
    # a user's score need not have one
    own = getattr(score, "rounding", None)
    if own is not None:
        bound: Tensor = own(queries, keys)
        return bound
    factor = _terms(queries, keys) + 8 + queries.shape[-2] ** 0.5
    return factor * torch.finfo(keys.dtype).eps * score(queries, keys).abs()


def _terms(
    queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b 1 1"]:
    """Return the number of columns of each problem that are not 0 in all queries and keys."""
    live = (queries != 0).any(dim=-2) | (keys != 0).any(dim=-2)
    return live.sum(dim=-1)[..., None, None].to(queries.dtype)
