"""State of Lloyd's iterations on the device, and the interface of the kernels that advance it.

The host enqueues many iterations and reads the state now and then: `LloydState` holds all that
kernels keep between iterations, and `LloydKernels` is what the Hopper and the Triton kernels
implement.
"""

import ctypes
import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.points import DevicePoints, list_fields

# Values of `LloydState.status[0]`: iterations continue; the stop rule holds; a cluster has no
# points; iterations wait for `resume`. kernels/prelude.cuh has the same.
RUNNING, SETTLED, EMPTY, PAUSED = 0, 1, 2, 3
# `LloydState.status[2]` before the final assignment.
NOT_FINAL = -1
# Rows of `LloydState.record`, a ring buffer: the host must read before 64 iterations have passed.
# Chosen by hand; 2 KiB in the copy that the host reads.
RECORD_LENGTH = 64

_POINTERS = "centers rounded assigned sums masses changed tolerance record status total ticket"


class LloydStateArgument(ctypes.Structure):
    """`struct LloydState` of kernels/prelude.cuh."""

    _fields_ = list_fields(f"pointer {_POINTERS}", "int k directions", "float ratio")


class LloydState:
    """The state of Lloyd's iterations for k centers; no point is assigned at first.

    One iteration does nothing if `status[0]` is not `RUNNING`. Otherwise:

    1. Every point gets the label of its nearest center in `rounded`; the lower label on exact ties.
    2. `changed` is the number of points with a weight above 0 whose label is not the one in
       `assigned`. `sums` and `masses` become those of the new labels, which go to `assigned`.
    3. If a mass is 0, `status[0]` becomes `EMPTY` and nothing else changes.
    4. Otherwise row `status[1]`, modulo `RECORD_LENGTH`, of `record` becomes (the sum over clusters
       of mass |c|^2 - 2 sum c with c from `rounded`, the sum of squared shifts of the centers,
       changed, 0), the centers move to the means, `rounded` to their rounded values, `status[1]`
       grows by 1, and `status[0]` becomes `SETTLED` if changed is 0 or the shift is at most
       `tolerance`.

    Small arrays are slices of one buffer: allocating takes longer than using them, and one copy
    brings all that the host reads.

    Parameters
    ----------
    points : DevicePoints
        The points.
    n_clusters : int
        k.
    directions : bool
        Centers move to the directions of the sums instead of the means; one whose sum is zero
        stays.

    Attributes
    ----------
    n_clusters, n_features : int
        k and d.
    status : Tensor of shape (4,)
        int32: status, number of iterations so far, status at the end, unused.
    changed : Tensor of shape (1,)
        int64.
    tolerance : Tensor of shape (1,)
        In float64.
    record : Tensor of shape (`RECORD_LENGTH`, 4)
        In float64.
    masses : Tensor of shape (k,)
        The sum of w, int64, in units of `DevicePoints.mass_unit`.
    sums : Tensor of shape (k, d)
        The sum of w x, int64, in units of `DevicePoints.sum_unit`.
    centers : Tensor of shape (k, d)
        In float64.
    rounded : Tensor of shape (k, d)
        The centers in the precision of the rows, to which distances are computed.
    log_norms : Tensor of shape (1,)
        int64: the sum of log2 |x|, in units of 2^-16, with x in the unit of the float16 copy.
    assigned : Tensor of shape (n,)
        Labels that `sums` and `masses` belong to, int32; -1 if the point is in none of them.
    labels_released : bool
        `assigned` belongs to the session now and must not be written any more.
    """

    def __init__(self, points: DevicePoints, n_clusters: int, directions: bool = False) -> None:
        rows, k, d = points.rows, n_clusters, points.n_features
        self.n_clusters, self.n_features, self.directions = k, d, directions
        self.labels_released, self._n_read = False, 0
        # Lengths in numbers of 8 bytes. What the host reads comes first: `read_report` copies up
        # to the end of the masses.
        lengths = {"status": 2, "total": 1, "changed": 1, "record": 4 * RECORD_LENGTH, "masses": k}
        lengths |= {"tolerance": 1, "ticket": 1, "log_norms": 1, "sums": k * d, "centers": k * d}
        lengths |= {"rounded": -(-k * d * rows.dtype.itemsize // 8)}
        self._slices, stop = dict[str, slice](), 0
        for name, length in lengths.items():
            self._slices[name] = slice(stop, stop + length)
            stop += length + length % 2  # multiples of 16 bytes: kernels load four floats at once
        self._buffer = torch.zeros(stop, dtype=torch.int64, device=rows.device)
        parts = {name: self._buffer[part] for name, part in self._slices.items()}
        self.status = parts["status"].view(torch.int32)
        self.changed, self.masses = parts["changed"], parts["masses"]
        self.sums = parts["sums"].view(k, d)
        self.log_norms = parts["log_norms"]
        self.tolerance = parts["tolerance"].view(torch.float64)
        self._total = parts["total"].view(torch.float64)
        self.record = parts["record"].view(torch.float64).view(RECORD_LENGTH, 4)
        self.centers = parts["centers"].view(torch.float64).view(k, d)
        # With an odd number of float32 the last 8 bytes are half used.
        self.rounded = parts["rounded"].view(rows.dtype)[: k * d].view(k, d)
        self.assigned = torch.full((points.n_rows,), -1, dtype=torch.int32, device=rows.device)

    def make_argument(self) -> LloydStateArgument:
        """Return the state as kernels take it; its `assigned` is set again by `begin`."""
        start = self._buffer.data_ptr()
        pointers = {
            name: start + 8 * self._slices[name].start
            for name in _POINTERS.split()
            if name != "assigned"
        }
        sizes = {"k": self.n_clusters, "directions": int(self.directions)}
        pointers["assigned"] = self.assigned.data_ptr()
        return LloydStateArgument(**pointers, **sizes, ratio=self.center_ratio)

    @property
    def center_ratio(self) -> float:
        """A guess of |c| / |x|: it splits the bound of a score's error between row and center.

        Any number would do for exact labels (`ScoreError` in kernels/prelude.cuh); with a bad one
        more of them are computed twice. For normally distributed points, k centers explain at
        most 1 - k^(-2 / d) of the variance. Where clusters are clear the ratio is nearer to 1, but
        there few scores are close.
        """
        if self.directions:
            return 1.0
        explained = 1 - self.n_clusters ** (-2 / self.n_features)
        # At least 1/8, chosen by hand: noise in the means of few points is not explained, either.
        return max(math.sqrt(explained), 0.125)

    @property
    def total(self) -> Tensor:
        """A copy of the sum of w d^2 that was measured last, float64, ()."""
        return self._total[0].clone()

    def read_report(self) -> "LloydReport":
        """Wait for the iterations, and return what has happened since the last report."""
        slices = self._slices
        numbers = self._buffer[: slices["masses"].stop].cpu().numpy()
        status = numbers[slices["status"]].view(np.int32)
        record = numbers[slices["record"]].view(np.float64).reshape(RECORD_LENGTH, 4)
        start, self._n_read = self._n_read, int(status[1])
        changes = record[np.arange(start, self._n_read) % RECORD_LENGTH, 0].tolist()
        total = float(numbers[slices["total"]].view(np.float64)[0])
        masses = numbers[slices["masses"]]
        return LloydReport(int(status[0]), int(status[2]), changes, total, masses)

    def begin(self, centers: Tensor, tolerance: float) -> None:
        """Start from these centers (k, d); sums stay those of `assigned`."""
        self.centers.copy_(centers)
        self.rounded.copy_(centers)
        self.tolerance.fill_(tolerance)
        self.status.zero_()
        self.status[2:3].fill_(NOT_FINAL)
        self.restart_reports()

    def restart_reports(self) -> None:
        """Count iterations from 0 in the next report."""
        self._n_read = 0

    def resume(self) -> None:
        """Continue after a pause."""
        self.status[:1].fill_(RUNNING)

    def forget(self) -> None:
        """Set all points to unassigned."""
        self.sums.zero_()
        self.masses.zero_()
        if self.labels_released:
            self.assigned, self.labels_released = torch.empty_like(self.assigned), False
        self.assigned.fill_(-1)

    def release_labels(self) -> Tensor:
        """Give the labels away without a copy; call `forget` before the next iteration."""
        self.labels_released = True
        return self.assigned


@dataclass(frozen=True)
class LloydReport:
    """State of the iterations as the host reads it.

    Attributes
    ----------
    status : int
        `LloydState.status[0]`.
    final_status : int
        The status with which iterations ended, if the final labels are there; else `NOT_FINAL`.
    changes : list of float
        The first number of each new row of `LloydState.record`.
    total : float
        The sum of w d^2 of the final labels.
    masses : ndarray of shape (k,)
        `LloydState.masses`.
    """

    status: int
    final_status: int
    changes: list[float]
    total: float
    masses: np.ndarray


@runtime_checkable
class LloydKernels(Protocol):
    """Kernels that iterate over some points: see `LloydState` for what an iteration does.

    Attributes
    ----------
    state : LloydState
        The state that they read and change.
    first_batch : int
        Iterations before the host reads the status for the first time, if there are not more; a
        quarter of them otherwise. Superfluous ones cost their launches.
    """

    state: LloydState
    first_batch: int

    def begin(self, centers: Tensor, tolerance: float) -> None:
        """Start from these centers (k, d), in float64."""

    def step(self) -> None:
        """Enqueue one iteration."""

    def assign(self) -> None:
        """Enqueue labels, sums and masses alone, from the centers in `LloydState.rounded`."""

    def assign_final(self, *, last: bool) -> None:
        """Enqueue the final labels, for use if the stop rule holds or after the `last` iteration.

        The centers are rounded before, as a user gets them. Then `LloydState.status[2]` is the
        status of the iterations, and the sum of w d^2 is measured. If iterations have not ended,
        they pause. Kernels that cannot do it do nothing: then the host asks for the final labels.
        """
        return

    def fill_empty(self, masses: np.ndarray, distances: Tensor) -> bool:
        """End an iteration that left clusters empty: each gets the farthest point that is left.

        Do nothing and return False if there are too many of them, or no kernel for it.

        Parameters
        ----------
        masses : ndarray of shape (k,)
            `LloydState.masses`.
        distances : Tensor of shape (n,)
            Overwritten.
        """
        return False

    def measure(self, distances: Tensor) -> Tensor:
        """Write squared distances (n,) to the assigned centers; return the sum of w d^2, ()."""
