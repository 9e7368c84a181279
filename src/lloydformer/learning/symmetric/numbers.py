"""The numbers of a symmetric layer, and the invariants of a problem that they depend on."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

INVARIANTS = ("one", "cost", "clusters", "margin", "time", "tail", "members", "share")
"""What a number may depend on; the last two differ from center to center.

cost: log of the mean squared distance to the nearest center, with the mean squared distance to
the mean as its unit. clusters: log of k / 10. margin: log of the mean squared distance to the
second nearest over that to the nearest. time: from -1 in the first step to 1 in the last. tail:
log of the mean fourth power of the distance to the mean. members, share: log of k times the part
of the points, and of the cost, that is the center's.
"""
OF_A_CENTER = 2
"""How many invariants, the last ones, are of a center and not of the problem."""
_FLOOR = 1e-6
_LEAST = 0.05
"""Added to a center's part: one without points is not infinitely far from the others."""


@dataclass(frozen=True)
class Numbers:
    r"""What one step computes with: one number for each head, or pair of heads.

    Each is linear in the invariants, $\theta^\top z$, so that the same few weights serve wide
    clusters and narrow ones, the first step and the last; those that must be positive are its
    exponential.
    """

    n_heads: int = 4
    n_apart: int = 2

    @cached_property
    def sizes(self) -> dict[str, int]:
        h, a = self.n_heads, self.n_apart
        return {"sharpness": h, "distance": h, "belonging": h * h, "log_belonging": h,
                "nearest": h, "second": h, "stride": h, "apart_sharpness": a, "apart": a}  # fmt: skip

    @property
    def count(self) -> int:
        return sum(self.sizes.values())

    def rows(self, name: str) -> slice:
        """Where a kind of numbers stands among all."""
        names = list(self.sizes)
        start = sum(self.sizes[n] for n in names[: names.index(name)])
        return slice(start, start + self.sizes[name])

    def at(
        self, theta: Float[Tensor, "r p f"], invariants: Float[Tensor, "b r k f"]
    ) -> dict[str, Float[Tensor, "b r k m"]]:
        """The numbers of each center, by name."""
        values = torch.einsum("rpf,brkf->brkp", theta, invariants)
        parts = torch.split(values, list(self.sizes.values()), dim=-1)
        return dict(zip(self.sizes, parts, strict=True))

    def of_all(
        self, name: str, theta: Float[Tensor, "r p f"], invariants: Float[Tensor, "b r k f"]
    ) -> Float[Tensor, "b r m"]:
        """A kind of numbers that is the same for all centers: without what is a center's own."""
        common = slice(None, len(INVARIANTS) - OF_A_CENTER)
        return torch.einsum(
            "rpf,brf->brp", theta[:, self.rows(name), common], invariants[:, :, 0, common]
        )


def invariants(
    nearest: Float[Tensor, "b r n"],
    second: Float[Tensor, "b r n"],
    own: Float[Tensor, "b r k n"],
    tail: Float[Tensor, " b"],
    time: float,
) -> Float[Tensor, "b r k f"]:
    """The invariants of a state, `INVARIANTS` in order; own: 1 where a point is a center's."""
    k, n = own.shape[2:]
    cost = nearest.mean(dim=-1) + _FLOOR
    margin = ((second.mean(dim=-1) + _FLOOR) / cost).log()
    one = torch.ones_like(cost)
    common = torch.stack(
        [one, cost.log(), math.log(k / 10) * one, margin, time * one, tail[:, None] * one], dim=-1
    )
    members = own.mean(dim=-1) * k
    share = (own @ nearest.unsqueeze(-1)).squeeze(-1) * (k / n) / cost.unsqueeze(-1)
    of_center = torch.stack([(members + _LEAST).log(), (share + _LEAST).log()], dim=-1)
    return torch.cat([common.unsqueeze(2).expand(-1, -1, k, -1), of_center], dim=-1)
