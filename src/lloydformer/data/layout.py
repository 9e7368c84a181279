"""The layout of data: sizes, precision and coordinates, O(d) numbers that need no row.

Rows are cut into leaves, fixed ranges of global rows. Each leaf is summed on its own, and the sums
are merged in float64 along one binary tree. So threads, partitions and workers do not change a bit,
as long as the size of a leaf depends on none of them.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.data.column_statistics import Scaling
from lloydformer.numerics.checks import ArgumentError
from lloydformer.numerics.scaling import overflow_error

# Rows of a leaf on the CPU. Chosen by hand; a change alters the last bits of every sum.
LEAF = 8192
# A leaf has k d sums. Beyond 2**17 of them (1 MB in float64) leaves get longer, at least k d / 16
# rows, so that merging the sums stays cheap next to adding up the rows.
_SUMS = 1 << 17
# Scores of a part on the CPU: 4 MB in float32, which stay in the cache of a core or near it. But
# parts get no shorter than 1024 rows, where the overhead of a call would begin to count.
_CPU_SCORES = 1 << 20
_FEWEST = 1024
# A GPU needs long leaves to be busy; 2**27 scores take 512 MB in float32.
_GPU_LEAF = 1 << 20
_GPU_SCORES = 1 << 27


def leaf_rows(device: torch.device, n_features: int, n_clusters: int) -> int:
    """Return the rows of a leaf; on the CPU they depend on k and d alone, not on engine or n."""
    if device.type != "cpu":
        return min(_GPU_LEAF, _GPU_SCORES // max(n_clusters, n_features))
    sums = n_features * n_clusters
    return LEAF if sums <= _SUMS else 1 << (sums // 16 - 1).bit_length()


def part_rows(device: torch.device, n_features: int, n_clusters: int) -> int:
    """Return the rows of a leaf that are processed together; bounds the memory of their scores."""
    leaf = leaf_rows(device, n_features, n_clusters)
    if device.type != "cpu":
        return leaf
    return max(_FEWEST, min(leaf, _CPU_SCORES // max(n_clusters, n_features)))


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
        Device of the centers and of the summaries of folds.
    leaf : int
        Rows of a leaf of the binary tree along which sums are merged.
    part : int
        Rows of a leaf that are processed together, so that temporary memory stays small.
    origin : Tensor of shape (d,)
        Subtracted from every row, after scaling.
    scaling : Scaling or None
        Applied to every row.
    weighted : bool
        True if rows have weights.
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

    def to_row_units(self, centers: Tensor) -> Tensor:
        """Convert centers in the units of the data to the coordinates of the rows, in float64."""
        return self.to_exact_units(centers) - self.origin

    def to_exact_units(self, centers: Tensor) -> Tensor:
        """Convert centers in the units of the data to float64, scaled, not relative to the origin.

        Less the origin, both rows and centers may lose digits. So these are the numbers that final
        labels and distances refer to, and that stored rows are compared with in float64.
        """
        given = centers.to(self.device).double()
        return given if self.scaling is None else self.scaling.from_data(given)

    def to_data_units(self, centers: Tensor) -> Tensor:
        """Convert centers to the units and the precision of the data; undoes `to_row_units`."""
        placed = centers + self.origin
        return (placed if self.scaling is None else self.scaling.to_data(placed)).to(self.dtype)

    def round_centers(self, centers: Tensor) -> Tensor:
        """Round centers as a user gets them, so that labels belong to the returned centers."""
        return self.to_row_units(self.to_data_units(centers))

    def apply_weight_unit(self, *sums: float) -> tuple[float, ...]:
        """Return sums of weighted squared distances for weights as the user gave them.

        Raises `ValueError` for numbers that float64 cannot hold.
        """
        given = tuple(value * self.weight_unit for value in sums)
        if all(map(math.isfinite, given)):
            return given
        if all(map(math.isfinite, sums)):
            raise overflow_error(self.weight_unit)
        raise ArgumentError(
            "X",
            "found values whose squared distances float64 cannot add up; rescale them, for example "
            "with sklearn.preprocessing.StandardScaler",
        )
