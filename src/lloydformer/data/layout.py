"""The layout of data: what is known of them without reading a row, O(d) numbers."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.data.scaling import Scaling
from lloydformer.numerics.units import too_heavy


@dataclass(frozen=True)
class Layout:
    """Sizes, precision and coordinates of some data.

    Rows are read scaled and relative to `origin`; centers are kept in the same coordinates, in
    float64.

    Attributes
    ----------
    n_rows, n_features : int
        The shape of the data.
    dtype : torch.dtype
        Precision of the rows: float32 or float64.
    device : torch.device
        Where centers and the summaries of folds live.
    leaf : int
        Rows of a leaf of the binary tree along which sums are merged.
    part : int
        Rows of a leaf that are processed together, so that temporary memory stays small.
    origin : Tensor of shape (d,)
        Subtracted from every row, after scaling.
    scaling : Scaling or None
        Applied to every row.
    weighted : bool
        Do rows have weights?
    weight_unit : float
        Weights are multiples of it: a power of two, near the largest weight that the user gave.
    """

    n_rows: int
    n_features: int
    dtype: torch.dtype
    device: torch.device
    leaf: int
    part: int
    origin: Tensor
    scaling: Scaling | None
    weighted: bool
    weight_unit: float = 1.0

    @property
    def n_leaves(self) -> int:
        return -(-self.n_rows // self.leaf)

    def place(self, centers: Tensor) -> Tensor:
        """Centers in the units of the data, converted to the coordinates of the rows (float64)."""
        given = centers.to(self.device).double()
        scaled = given if self.scaling is None else self.scaling.apply(given)
        return scaled - self.origin

    def returned(self, centers: Tensor) -> Tensor:
        """The inverse of `place`: centers in the units and the precision of the data."""
        placed = centers + self.origin
        return (placed if self.scaling is None else self.scaling.undo(placed)).to(self.dtype)

    def rounded(self, centers: Tensor) -> Tensor:
        """Centers rounded as a user gets them, so that labels belong to the returned centers."""
        return self.place(self.returned(centers))

    def in_given_units(self, *sums: float) -> tuple[float, ...]:
        """Sums of weighted squared distances, for weights as the user gave them.

        It raises `ValueError` for numbers that float64 cannot hold.
        """
        given = tuple(value * self.weight_unit for value in sums)
        if all(map(math.isfinite, given)):
            return given
        if all(map(math.isfinite, sums)):
            raise too_heavy(self.weight_unit)
        raise ValueError(
            "X: found values whose squared distances float64 cannot add up; "
            "rescale them, for example with sklearn.preprocessing.StandardScaler"
        )
