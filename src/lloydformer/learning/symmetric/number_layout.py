"""The numbers of a symmetric layer: their kinds, and where each stands in the flat weights."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.symmetric.invariants import INVARIANTS, N_OF_CENTER


@dataclass(frozen=True)
class NumberLayout:
    r"""The numbers that one step uses: one for each head, or for each pair of heads.

    Each number is linear in the invariants, $\theta^\top z$, so the same weights serve wide and
    narrow clusters, first and last steps. Numbers that must be positive are the exponential of
    that. `n_heads`: decoder cross-attention heads. `n_apart`: decoder self-attention heads.
    """

    n_heads: int = 4
    n_apart: int = 2

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many numbers there are of each kind, in order."""
        h, a = self.n_heads, self.n_apart
        by_head = ("sharpness", "distance", "log_belonging", "nearest", "second", "stride")
        return {
            **dict.fromkeys(by_head, h), "belonging": h * h,
            **dict.fromkeys(("apart_sharpness", "apart"), a),
        }  # fmt: skip

    @property
    def count(self) -> int:
        """How many numbers there are in all."""
        return sum(self.sizes.values())

    def rows(self, name: str) -> slice:
        """Return the positions of a kind among all numbers."""
        names = list(self.sizes)
        start = sum(self.sizes[n] for n in names[: names.index(name)])
        return slice(start, start + self.sizes[name])

    def at(
        self, theta: Float[Tensor, "r p f"], invariants: Float[Tensor, "b r k f"]
    ) -> dict[str, Float[Tensor, "b r k m"]]:
        """Return the numbers of each center, by kind."""
        values = torch.einsum("rpf,brkf->brkp", theta, invariants)
        parts = torch.split(values, list(self.sizes.values()), dim=-1)
        return dict(zip(self.sizes, parts, strict=True))

    def of_all(
        self, name: str, theta: Float[Tensor, "r p f"], invariants: Float[Tensor, "b r k f"]
    ) -> Float[Tensor, "b r m"]:
        """Return a kind that all centers share: computed without the invariants of a center."""
        common = slice(None, len(INVARIANTS) - N_OF_CENTER)
        return torch.einsum(
            "rpf,brf->brp", theta[:, self.rows(name), common], invariants[:, :, 0, common]
        )
