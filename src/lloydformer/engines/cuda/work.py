"""What the kernels of k-means keep between iterations, all of it on the device of the points."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.points import Points

GOING, SETTLED, EMPTY = 0, 1, 2
"""Values of `Work.status[0]`: iterations go on; the stop rule holds; a cluster has no points."""
RECORDS = 64
"""Iterations between two looks of the host, at most."""


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
    report : Tensor
        Status and record as one array, int64.
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
    report: Tensor
    directions: bool = False

    @staticmethod
    def empty(points: Points, n_clusters: int, directions: bool = False) -> "Work":
        """Arrays for k centers; no point is assigned yet."""
        k, d, rows = n_clusters, points.n_features, points.rows
        # one array of 8-byte numbers for all that is small: allocating takes longer than using it
        shapes = ((2,), (RECORDS, 4), (k, d), (k, d), (k,), (1,), (1,))
        sizes = [math.prod(shape) for shape in shapes]
        everything = torch.zeros(sum(sizes), dtype=torch.int64, device=rows.device)
        cut = zip(torch.split(everything, sizes), shapes, strict=True)
        parts = [part.view(shape) for part, shape in cut]
        status, record, centers, sums, masses, changed, tolerance = parts
        return Work(
            centers=centers.view(torch.float64), seen=torch.zeros_like(centers, dtype=rows.dtype),
            assigned=torch.full((points.n_rows,), -1, dtype=torch.int32, device=rows.device),
            sums=sums, masses=masses, changed=changed, tolerance=tolerance.view(torch.float64),
            record=record.view(torch.float64), status=status.view(torch.int32)[:2],
            directions=directions, report=everything[: 2 + 4 * RECORDS],
        )  # fmt: skip

    def so_far(self) -> tuple[int, np.ndarray]:
        """Wait for the iterations: the status, and the rows of the record that are new."""
        report = self.report.cpu().numpy()
        status, count = report[:1].view(np.int32).tolist()
        self.status[1:].zero_()
        return status, report[2:].view(np.float64).reshape(RECORDS, 4)[:count]

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
