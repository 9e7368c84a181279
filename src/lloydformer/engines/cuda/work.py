"""What the kernels of k-means keep between iterations, all of it on the device of the points."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.engines.cuda.points import Points

GOING, SETTLED, EMPTY = 0, 1, 2
"""Values of `Work.status[0]`: iterations go on; the stop rule holds; a cluster has no points."""


@dataclass(frozen=True)
class Work:
    """The state of Lloyd's iterations for k centers.

    One iteration does nothing if `status[0]` is not `GOING`. Otherwise:

    1. Every point gets the label of its nearest center in `seen`; the lower label on exact ties.
    2. `changed` is the number of points with a weight above 0 whose label is not the one in
       `assigned`. `sums` and `masses` become those of the new labels, which go to `assigned`.
    3. If a mass is 0, `status[0]` becomes `EMPTY` and nothing else changes.
    4. Otherwise row `status[1]` of `record` becomes (the sum over clusters of mass |c|^2 - 2 sum c
       with c from `seen`, the sum of squared shifts of the centers, changed, 0), the centers move
       to the means, `seen` to their rounded values, `status[1]` grows by 1, and `status[0]`
       becomes `SETTLED` if changed is 0 or the shift is at most `tolerance`. Nobody asks for more
       iterations than `record` has rows.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In float64.
    seen : Tensor of shape (k, d)
        The centers in the precision of the rows, to which distances are computed.
    assigned : Tensor of shape (n,)
        Labels that `sums` and `masses` belong to, int32; -1 if the point is in none of them.
    sums : Tensor of shape (k, d)
        The sum of w x, int64, in units of `Points.sum_unit`.
    masses : Tensor of shape (k,)
        The sum of w, int64, in units of `Points.mass_unit`.
    changed : Tensor of shape (1,)
        int64.
    tolerance : Tensor of shape (1,)
        In float64.
    record : Tensor of shape (t, 4)
        In float64.
    status : Tensor of shape (2,)
        int32.
    directions : bool
        Centers move to the directions of the sums instead of the means; one whose sum is zero
        stays.
    """

    centers: Tensor
    seen: Tensor
    assigned: Tensor
    sums: Tensor
    masses: Tensor
    changed: Tensor
    tolerance: Tensor
    record: Tensor
    status: Tensor
    directions: bool = False

    @staticmethod
    def empty(points: Points, n_clusters: int, n_records: int, directions: bool = False) -> "Work":
        """Arrays for k centers; no point is assigned yet."""
        k, d, rows = n_clusters, points.n_features, points.rows

        def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=rows.device)

        return Work(
            centers=zeros(k, d, dtype=torch.float64), seen=zeros(k, d, dtype=rows.dtype),
            assigned=zeros(points.n_rows, dtype=torch.int32).fill_(-1),
            sums=zeros(k, d, dtype=torch.int64), masses=zeros(k, dtype=torch.int64),
            changed=zeros(1, dtype=torch.int64), tolerance=zeros(1, dtype=torch.float64),
            record=zeros(n_records, 4, dtype=torch.float64), status=zeros(2, dtype=torch.int32),
            directions=directions,
        )  # fmt: skip

    def begin(self, centers: Tensor, tolerance: float) -> None:
        """Start from these centers (k, d); sums stay those of `assigned`."""
        self.centers.copy_(centers)
        self.seen.copy_(centers)
        self.tolerance.fill_(tolerance)
        self.status.zero_()

    def forget(self) -> None:
        """No point is assigned any more."""
        for zeroed in (self.sums, self.masses):
            zeroed.zero_()
        self.assigned.fill_(-1)
