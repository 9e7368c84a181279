"""The numbers of a symmetric layer, and the invariants of a problem that they depend on."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.plans.symmetric import FLOOR

RANGES = {
    "cost": (-3.0, 0.0), "clusters": (-1.2, 1.8), "margin": (0.0, 2.0), "gap": (-4.0, 2.0),
    "time": (0.0, 1.0), "tail": (0.0, 3.0), "members": (-2.0, 1.0), "share": (-2.0, 1.5),
}  # fmt: skip
"""What a number may depend on, and from where to where; the last two are a center's own.

cost: log of the mean squared distance to the nearest center, with the mean squared distance to the
mean as its unit. clusters: log of k / 10. margin: log of the mean squared distance to the second
nearest over that to the nearest. gap: log of their difference over that to the nearest: the more
dimensions, the less distances differ, and the sharper one has to look. time: 0 in the first step,
1 in the last. tail: log of the mean fourth power of the distance to the mean. members, share: log
of k times the part of the points, and of the cost, that is the center's. A range is what most
tasks have: it becomes -1 to 1, and beyond it a number stays what it is at its end.
"""
INVARIANTS = ("one", *RANGES)
OF_A_CENTER = 2
"""How many invariants, the last ones, are of a center and not of the problem."""
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
        by_head = ("sharpness", "distance", "log_belonging", "nearest", "second", "stride")
        return {
            **dict.fromkeys(by_head, h), "belonging": h * h,
            **dict.fromkeys(("apart_sharpness", "apart"), a),
        }  # fmt: skip

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


class Means(NamedTuple):
    """What invariants are made of, inside of a frame.

    Means of the squared distances to the nearest and second nearest center and of their
    difference; each center's part of the points, and k times its part of the first mean; the log
    mean fourth power.
    """

    nearest: Float[Tensor, "b r"]
    second: Float[Tensor, "b r"]
    gap: Float[Tensor, "b r"]
    members: Float[Tensor, "b r k"]
    costs: Float[Tensor, "b r k"]
    tail: Float[Tensor, " b"]


def invariants(
    nearest: Float[Tensor, "b r n"],
    second: Float[Tensor, "b r n"],
    own: Float[Tensor, "b r k n"],
    tail: Float[Tensor, " b"],
    time: float,
) -> Float[Tensor, "b r k f"]:
    """The invariants of a state, `INVARIANTS` in order; own: 1 where a point is a center's."""
    k, n = own.shape[2:]
    costs = (own @ nearest.unsqueeze(-1)).squeeze(-1) * (k / n)
    gap = (second - nearest).mean(dim=-1)
    means = Means(
        nearest.mean(dim=-1), second.mean(dim=-1), gap, own.mean(dim=-1), costs, tail
    )  # fmt: skip
    return of_means(means, time)


def of_means(means: Means, time: float) -> Float[Tensor, "b r k f"]:
    """The same from means over the points, which a fold gives."""
    k = means.members.shape[2]
    cost = means.nearest + FLOOR
    one = torch.ones_like(cost)
    margin = ((means.second + FLOOR) / cost).log()
    gap = ((means.gap + FLOOR) / cost).log()
    tail = means.tail[:, None] * one
    of_all = [cost.log(), math.log(k / 10) * one, margin, gap, time * one, tail]
    members, share = means.members * k, means.costs / cost.unsqueeze(-1)
    found = torch.stack(
        [*(value.unsqueeze(-1).expand_as(members) for value in of_all),
         (members + _LEAST).log(), (share + _LEAST).log()], dim=-1
    )  # fmt: skip
    within = [
        _within(value, *ends) for value, ends in zip(found.unbind(-1), RANGES.values(), strict=True)
    ]
    return torch.stack([torch.ones_like(members), *within], dim=-1)


def _within(value: Tensor, low: float, high: float) -> Tensor:
    """From -1 to 1 as it goes from low to high."""
    return ((2 * value - low - high) / (high - low)).clamp(-1, 1)
