"""Run soft and robust iterations on the GPU; the host reads the stop status every few of them."""

import ctypes
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launch import Grid, Launch
from lloydformer.engines.cuda.lloyd_state import EMPTY, PAUSED, RECORD_LENGTH, RUNNING, SETTLED
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import list_fields, list_macros
from lloydformer.plans.contract import IterationsResult
from lloydformer.plans.robust import RobustIterations
from lloydformer.plans.soft import SoftIterations

# Iterations before the host reads the status: 4, 8, then always 16. Chosen by hand: superfluous
# iterations run in full here, unlike those of Lloyd's kernels, and take 0.2 to 0.5 ms each with a
# million points (gpu_algorithms.json).
_FIRST_BATCH, _LONGEST_BATCH = 4, 16


class MoveArgument(ctypes.Structure):
    """`struct Move` of kernels/move_centers.cu."""

    _fields_ = list_fields(
        "pointer centers rounded record status certain", "double tolerance faint", "int k d"
    )


class DeviceLoop:
    """Iterations that end when the centers have settled.

    Parameters
    ----------
    task : SoftIterations or RobustIterations
        Initial centers, stop rule, number of iterations.
    arrays : CudaPointArrays
        The points.
    sums : Tensor of shape (2 + k (d + 1),)
        Written by an iteration: objective, changed points, of each center its sums and mass.
    min_mass : float
        A cluster with less mass is empty: then the host runs the iteration.
    certain : Tensor of shape (1,) or None
        int32; 0 if thresholds have not converged: then the iteration is run again.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In float64; each iteration begins with them.
    rounded : Tensor of shape (k, d)
        The centers in the precision of the rows.
    """

    def __init__(
        self,
        task: SoftIterations | RobustIterations,
        arrays: CudaPointArrays,
        sums: Tensor,
        min_mass: float,
        certain: Tensor | None = None,
    ) -> None:
        self._task, (k, d) = task, task.centers.shape
        self.centers = task.centers.double().clone(memory_format=torch.contiguous_format)
        self.rounded = self.centers.to(arrays.layout.dtype)
        # Objective and shift of each iteration, then the status and the number of iterations: one
        # copy brings all of it to the host.
        self._record = torch.zeros(2 * RECORD_LENGTH + 1, dtype=torch.float64, device=sums.device)
        self._status = self._record[-1:].view(torch.int32)
        self._history: list[float] = []
        self._sums, self._certain = sums, certain  # kept alive for the kernel
        tensors = self.centers, self.rounded, self._record, self._status, certain
        pointers = (None if tensor is None else tensor.data_ptr() for tensor in tensors)
        given = MoveArgument(*pointers, task.tolerance, min_mass, k, d), sums
        kernel = "move_centers.cu", "move_centers", sums.device, Grid(1, 512)
        self._move = Launch(*kernel, *given, macros=list_macros(arrays.points.rows))

    def run(
        self, iterate: Callable[[], None], prolong: Callable[[], None] | None = None
    ) -> IterationsResult:
        """Iterate until the stop rule holds.

        `iterate` enqueues one iteration, up to its sums. If its thresholds have not converged,
        `prolong` is called, after which `iterate` does more for them.
        """
        status, batch, most = RUNNING, _FIRST_BATCH, self._task.max_iter
        try:
            while status == RUNNING and len(self._history) < most:
                for _ in range(min(batch, most - len(self._history))):
                    iterate()
                    self._move()
                status, batch = self._read(), min(2 * batch, _LONGEST_BATCH)
                if status == PAUSED and prolong is not None:
                    prolong()
                    self._status[0] = status = RUNNING
                    batch = _FIRST_BATCH  # iterations behind an uncertain one are in vain
        except KeyboardInterrupt:
            self._read()
            return IterationsResult(self.centers, self._history, settled=False, interrupted=True)
        return IterationsResult(self.centers, self._history, status == SETTLED, status == EMPTY)

    def _read(self) -> int:
        """Wait, note the objective of each new iteration, and return the status."""
        known = self._record.cpu().numpy()
        status, count = known[-1:].view(np.int32).tolist()
        new = np.arange(len(self._history), count) % RECORD_LENGTH
        self._history += known[:-1].reshape(RECORD_LENGTH, 2)[new, 0].tolist()
        return status
