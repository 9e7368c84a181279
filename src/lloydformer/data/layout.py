"""The layout of data: what is known of them without reading a row, O(d) numbers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.data.scaling import Scaling


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

    @property
    def n_leaves(self) -> int:
        return -(-self.n_rows // self.leaf)

    def place(self, centers: Tensor) -> Tensor:
        """Centers in the units of the data, converted to the coordinates of the rows (float64)."""
        given = centers.to(self.device).double()
        scaled = given if self.scaling is None else self.scaling.apply(given)
        return scaled - self.origin.double()

    def returned(self, centers: Tensor) -> Tensor:
        """The inverse of `place`: centers in the units and the precision of the data."""
        placed = centers + self.origin.double()
        return (placed if self.scaling is None else self.scaling.undo(placed)).to(self.dtype)

    def rounded(self, centers: Tensor) -> Tensor:
        """Centers rounded as a user gets them, so that labels belong to the returned centers."""
        return self.place(self.returned(centers))
