"""Scaling of columns: computed over the data once, applied to rows as they are read."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.data.extent import extent

Scale = Literal["minmax", "standard"]
_ROWS = 1 << 14


@dataclass(frozen=True)
class Scaling:
    """x becomes (x - shift) / scale, column by column; constant columns become 0."""

    shift: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    def apply(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        return (rows - self.shift.to(rows)) / self.scale.to(rows)

    def undo(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        return rows * self.scale.to(rows) + self.shift.to(rows)


def scaling_of(points: Float[Tensor, "n d"], scale: Scale) -> Scaling:
    """ "minmax" maps each column to [0, 1], "standard" to mean 0 and variance 1."""
    if scale == "minmax":
        low, high = extent(points).double()
        return Scaling(low, torch.where(high > low, high - low, 1.0))
    if scale == "standard":
        mean = _mean(points, torch.zeros(points.shape[1], dtype=torch.float64), power=1)
        deviation = _mean(points, mean, power=2).sqrt()
        return Scaling(mean, torch.where(deviation > 0, deviation, 1.0))
    raise ValueError(f'scale: found {scale!r}; pass "minmax", "standard" or None')


def _mean(points: Tensor, around: Tensor, power: int) -> Tensor:
    """The mean of (x - around)^power over all rows, in float64, some rows at a time."""
    total = torch.zeros(points.shape[1], dtype=torch.float64)
    for part in torch.split(points, _ROWS):
        total += (part.double() - around).pow(power).sum(dim=0)
    return total / len(points)
