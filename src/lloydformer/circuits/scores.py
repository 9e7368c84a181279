"""Attention scores: how similar a projected query and a projected key are."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.distances import squared_distances


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


@dataclass(frozen=True)
class DotProduct:
    r"""Dot-product score $\langle q, k \rangle$, the usual attention (eq:attn-def)."""

    symbol = "⟨,⟩"

    def __call__(
        self, queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
    ) -> Float[Tensor, "*b q m"]:
        return queries @ keys.mT
