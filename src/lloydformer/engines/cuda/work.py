"""What the kernels of k-means keep between iterations, all of it on the device of the points."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.points import Points

GOING, SETTLED, EMPTY, PAUSED = 0, 1, 2, 3
"""Values of `Work.status[0]`: iterations go on; the stop rule holds; a cluster has no points;
iterations wait for `resume`."""
NOT_LANDED = -1
"""`Work.status[2]` before the points are labelled for the last time."""
RECORDS = 64
"""Iterations between two looks of the host, at most."""


@dataclass
class Work:
    """The state of Lloyd's iterations for k centers.

    One iteration does nothing if `status[0]` is not `GOING`. Otherwise:

    1. Every point gets the label of its nearest center in `seen`; the lower label on exact ties.
    2. `changed` is the number of points with a weight above 0 whose label is not the one in
       `assigned`. `sums` and `masses` become those of the new labels, which go to `assigned`.
    3. If a mass is 0, `status[0]` becomes `EMPTY` and nothing else changes.
    4. Otherwise row `status[1]`, modulo `RECORDS`, of `record` becomes (the sum over clusters of
       mass |c|^2 - 2 sum c with c from `seen`, the sum of squared shifts of the centers, changed,
       0), the centers move to the means, `seen` to their rounded values, `status[1]` grows by 1,
       and `status[0]` becomes `SETTLED` if changed is 0 or the shift is at most `tolerance`.

    Small arrays are parts of one: allocating takes longer than using them, and one copy brings
    all that the host reads.

    Attributes
    ----------
    n_clusters, n_features : int
        k and d.
    everything : Tensor
        int64; see the properties for its parts.
    dtype : torch.dtype
        Precision of the rows.
    assigned : Tensor of shape (n,)
        Labels that `sums` and `masses` belong to, int32; -1 if the point is in none of them.
    directions : bool
        Centers move to the directions of the sums instead of the means; one whose sum is zero
        stays.
    handed_over : bool
        `assigned` belongs to somebody else now.
    """

    n_clusters: int
    n_features: int
    everything: Tensor
    dtype: torch.dtype
    assigned: Tensor
    directions: bool = False
    handed_over: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)

    @staticmethod
    def empty(points: Points, n_clusters: int, directions: bool = False) -> "Work":
        """Arrays for k centers; no point is assigned yet."""
        rows, d = points.rows, points.n_features
        size = sum(_even(length) for _, length in _parts(n_clusters, d, rows.dtype.itemsize))
        everything = torch.zeros(size, dtype=torch.int64, device=rows.device)
        assigned = torch.full((points.n_rows,), -1, dtype=torch.int32, device=rows.device)
        return Work(n_clusters, d, everything, rows.dtype, assigned, directions)

    @cached_property
    def _places(self) -> dict[str, slice]:
        places, start = {}, 0
        for name, length in _parts(self.n_clusters, self.n_features, self.dtype.itemsize):
            places[name] = slice(start, start + length)
            start += _even(length)
        return places

    def _part(self, name: str, dtype: torch.dtype = torch.int64) -> Tensor:
        return self.everything[self._places[name]].view(dtype)

    def address(self, name: str) -> int:
        """The address of a part in the memory of the device."""
        return self.everything.data_ptr() + 8 * self._places[name].start

    @cached_property
    def status(self) -> Tensor:
        """What goes on, the number of iterations so far, how it ended, unused; int32, (4,)."""
        return self._part("status", torch.int32)

    @property
    def total(self) -> Tensor:
        """The sum of w d^2 that was measured last, float64, (); a copy."""
        return self._part("total", torch.float64)[0].clone()

    @cached_property
    def changed(self) -> Tensor:
        """int64, (1,)."""
        return self._part("changed")

    @cached_property
    def tolerance(self) -> Tensor:
        """float64, (1,)."""
        return self._part("tolerance", torch.float64)

    @cached_property
    def record(self) -> Tensor:
        """float64, (`RECORDS`, 4)."""
        return self._part("record", torch.float64).view(RECORDS, 4)

    @cached_property
    def masses(self) -> Tensor:
        """The sum of w, int64, in units of `Points.mass_unit`; (k,)."""
        return self._part("masses")

    @cached_property
    def largest(self) -> Tensor:
        """Upper bound of the norms of the points in units of float16, float32."""
        return self._part("largest", torch.float32)

    @cached_property
    def sums(self) -> Tensor:
        """The sum of w x, int64, in units of `Points.sum_unit`; (k, d)."""
        return self._part("sums").view(self.n_clusters, self.n_features)

    @cached_property
    def centers(self) -> Tensor:
        """In float64, (k, d)."""
        return self._part("centers", torch.float64).view(self.n_clusters, self.n_features)

    @cached_property
    def seen(self) -> Tensor:
        """The centers in the precision of the rows, to which distances are computed; (k, d)."""
        numbers = self._part("seen", self.dtype)[: self.n_clusters * self.n_features]
        return numbers.view(self.n_clusters, self.n_features)

    def report(self) -> "Report":
        """Wait for the iterations, and read what has happened since the last report."""
        places = self._places
        numbers = self.everything[: places["masses"].stop].cpu().numpy()
        status = numbers[places["status"]].view(np.int32)
        record = numbers[places["record"]].view(np.float64).reshape(RECORDS, 4)
        count, self._count = int(status[1]) - self._count, int(status[1])
        rows = np.arange(self._count - count, self._count) % RECORDS
        total = float(numbers[places["total"]].view(np.float64)[0])
        return Report(int(status[0]), int(status[2]), record[rows, 0].tolist(), total,
                      numbers[places["masses"]])  # fmt: skip

    def begin(self, centers: Tensor, tolerance: float) -> None:
        """Start from these centers (k, d); sums stay those of `assigned`."""
        self.centers.copy_(centers)
        self.seen.copy_(centers)
        self.tolerance.fill_(tolerance)
        self.status.zero_()
        self.status[2:3].fill_(NOT_LANDED)
        self.started()

    def started(self) -> None:
        """The count of iterations is 0 again."""
        self._count = 0

    def resume(self) -> None:
        """Go on after a pause."""
        self.status[:1].fill_(GOING)

    def forget(self) -> None:
        """No point is assigned any more."""
        self.sums.zero_()
        self.masses.zero_()
        if self.handed_over:
            self.assigned, self.handed_over = torch.empty_like(self.assigned), False
        self.assigned.fill_(-1)

    def hand_over(self) -> Tensor:
        """Give the labels away; `forget` must be called before the next iteration."""
        self.handed_over = True
        return self.assigned


@dataclass(frozen=True)
class Report:
    """What the host reads of iterations.

    Attributes
    ----------
    status : int
        `Work.status[0]`.
    ended : int
        The status with which iterations ended, if the last labels are there; else `NOT_LANDED`.
    changes : list of float
        The first number of each new row of `Work.record`.
    total : float
        The sum of w d^2 of the last labels.
    masses : ndarray of shape (k,)
        `Work.masses`.
    """

    status: int
    ended: int
    changes: list[float]
    total: float
    masses: np.ndarray


def _parts(k: int, d: int, itemsize: int) -> list[tuple[str, int]]:
    """Parts of `Work.everything` in their order, and their lengths in numbers of 8 bytes."""
    return [
        ("status", 2), ("total", 1), ("changed", 1), ("record", 4 * RECORDS), ("masses", k),
        ("tolerance", 1), ("ticket", 1), ("largest", 1), ("sums", k * d), ("centers", k * d),
        ("seen", -(-k * d * itemsize // 8)),
    ]  # fmt: skip


def _even(length: int) -> int:
    """Parts begin at multiples of 16 bytes, so that kernels can read four numbers at once."""
    return length + length % 2
