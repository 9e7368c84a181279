"""Invariants of a clustering state: what the numbers of a symmetric layer depend on.

They do not change under rotation, shift and scale of the points, nor under permutation of the
points or centers.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.plans.symmetric import FLOOR

RANGES = {
    "cost": (-3.0, 0.0), "clusters": (-1.2, 1.8), "margin": (0.0, 2.0), "gap": (-4.0, 2.0),
    "time": (0.0, 1.0), "tail": (0.0, 3.0), "members": (-2.0, 1.0), "share": (-2.0, 1.5),
}  # fmt: skip
"""The invariants and the range of each; the last two are properties of a single center.

- cost: log of the mean squared distance to the nearest center, in units of the mean squared
  distance to the mean.
- clusters: log of k / 10.
- margin: log of the mean squared distance to the second nearest center over that to the nearest.
- gap: log of the difference of these two over the latter. In many dimensions distances differ
  little, and heads must be sharper.
- time: 0 in the first step, 1 in the last.
- tail: log of the mean fourth power of the distance to the mean.
- members, share: log of k times the center's fraction of the points, and of the cost.

A range covers most tasks. It is mapped to [-1, 1]; values outside are clamped.
"""
INVARIANTS = ("one", *RANGES)
"""Names of the invariants in order; the first is the constant 1."""
N_OF_CENTER = 2
"""How many invariants, the last ones, belong to a center and not to the whole problem."""
_LEAST = 0.05
"""Added to a center's fraction, so that the logarithm of an empty cluster is finite."""


class InvariantInputs(NamedTuple):
    """The means over the points that invariants are computed from, in the units of a `Frame`."""

    nearest: Float[Tensor, "b r"]
    """Mean squared distance to the nearest center."""
    second: Float[Tensor, "b r"]
    """Mean squared distance to the second nearest center."""
    gap: Float[Tensor, "b r"]
    """Mean difference of the two."""
    members: Float[Tensor, "b r k"]
    """Fraction of the points that belong to each center."""
    costs: Float[Tensor, "b r k"]
    """k times each center's part of `nearest`."""
    tail: Float[Tensor, " b"]
    """Log of the mean fourth power of the distance to the mean."""


def invariants(
    nearest: Float[Tensor, "b r n"],
    second: Float[Tensor, "b r n"],
    own: Float[Tensor, "b r k n"],
    tail: Float[Tensor, " b"],
    time: float,
) -> Float[Tensor, "b r k f"]:
    """Return the invariants of a state, in the order of `INVARIANTS`.

    `nearest`, `second`: squared distances of each point. `own`: 1 where a point belongs to a
    center, else 0.
    """
    k, n = own.shape[2:]
    costs = (own @ nearest.unsqueeze(-1)).squeeze(-1) * (k / n)
    gap = (second - nearest).mean(dim=-1)
    inputs = InvariantInputs(
        nearest.mean(dim=-1), second.mean(dim=-1), gap, own.mean(dim=-1), costs, tail
    )  # fmt: skip
    return invariants_of(inputs, time)


def invariants_of(inputs: InvariantInputs, time: float) -> Float[Tensor, "b r k f"]:
    """Return the invariants from means over the points, which a fold computes."""
    k = inputs.members.shape[2]
    cost = inputs.nearest + FLOOR
    one = torch.ones_like(cost)
    margin = ((inputs.second + FLOOR) / cost).log()
    gap = ((inputs.gap + FLOOR) / cost).log()
    tail = inputs.tail[:, None] * one
    of_all = [cost.log(), math.log(k / 10) * one, margin, gap, time * one, tail]
    members, share = inputs.members * k, inputs.costs / cost.unsqueeze(-1)
    found = torch.stack(
        [*(value.unsqueeze(-1).expand_as(members) for value in of_all),
         (members + _LEAST).log(), (share + _LEAST).log()], dim=-1
    )  # fmt: skip
    within = [
        _to_unit_range(value, *ends)
        for value, ends in zip(found.unbind(-1), RANGES.values(), strict=True)
    ]
    return torch.stack([torch.ones_like(members), *within], dim=-1)


def _to_unit_range(value: Tensor, low: float, high: float) -> Tensor:
    """Map [low, high] to [-1, 1], and clamp."""
    return ((2 * value - low - high) / (high - low)).clamp(-1, 1)
