"""Scaling of columns: computed once over the data, applied to rows as they are read."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.data.extent import extent

Scale = Literal["minmax", "standard"]
_ROWS = 1 << 14
"""Rows of a chunk; bounds temporary memory."""


@dataclass(frozen=True)
class Scaling:
    """Maps x to (x - shift) / scale, column by column; constant columns become 0."""

    shift: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    def apply(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Scale rows."""
        return (rows - self.shift.to(rows)) / self.scale.to(rows)

    def undo(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Return scaled rows in the original units."""
        return rows * self.scale.to(rows) + self.shift.to(rows)


def scaling_of(points: Float[Tensor, "n d"], scale: Scale) -> Scaling:
    """Compute the scaling: "minmax" to [0, 1], "standard" to mean 0 and variance 1."""
    if scale == "minmax":
        shift, high = extent(points).double()
        spread = high - shift
    elif scale == "standard":
        first = points[0].double()  # makes the mean of a constant column exact
        shift = first + _mean(points, first, power=1)
        spread = _mean(points, shift, power=2).sqrt()
    else:
        raise ValueError(f'scale: found {scale!r}; pass "minmax", "standard" or None')
    if len(large := (~spread.to(points.dtype).isfinite()).nonzero()):
        raise ValueError(
            f"scale: found values in column number {int(large[0]) + 1} whose spread "
            f"{points.dtype} cannot hold; divide them by a large number first"
        )
    return Scaling(shift, torch.where(spread > 0, spread, 1.0))


def _mean(points: Tensor, around: Tensor, power: int) -> Tensor:
    """The mean of (x - around)^power over all rows, in float64, chunk by chunk."""
    total = torch.zeros(points.shape[1], dtype=torch.float64)
    for part in torch.split(points, _ROWS):
        total += (part.double() - around).pow(power).sum(dim=0)
    return total / len(points)
