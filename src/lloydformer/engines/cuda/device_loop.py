"""Run iterations on the GPU; the host reads the stop status every few iterations."""

import ctypes
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import Arguments, Grid, Launch, macros
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.work import EMPTY, GOING, PAUSED, RECORDS, SETTLED
from lloydformer.plans.contract import Ran

_AT_ONCE = 4
"""Iterations before the host looks at the stop rule for the first time; then twice as many."""
_MOST = 16


class _Moving(ctypes.Structure):
    """`struct Moving` of kernels/moving.cu."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("centers", "seen", "record", "status", "certain")),
        ("tolerance", ctypes.c_double), ("faint", ctypes.c_double),
        ("k", ctypes.c_int), ("d", ctypes.c_int),
    ]  # fmt: skip


@runtime_checkable
class LoopTask(Protocol):
    """What a loop is asked for: initial centers (k, d) in float64, stop rule, iterations."""

    @property
    def centers(self) -> Tensor: ...

    @property
    def tolerance(self) -> float: ...

    @property
    def max_iter(self) -> int: ...


class DeviceLoop:
    """Iterations that end when the centers have settled.

    Parameters
    ----------
    task : LoopTask
        Initial centers, stop rule, number of iterations.
    opened : PointsOnGpu
        The points.
    sums : Tensor of shape (2 + k (d + 1),)
        What an iteration adds up: objective, changed points, of each center its sums and mass.
    faint : float
        A cluster with less mass is empty: then the host runs the iteration.
    certain : Tensor of shape (1,) or None
        int32; 0 if thresholds have not converged: then the iteration is run again.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In float64; each iteration begins with them.
    seen : Tensor of shape (k, d)
        The same in the precision of the rows.
    status : Tensor of shape (2,)
        int32; what goes on, and the number of iterations.
    """

    def __init__(
        self, task: LoopTask, opened: PointsOnGpu, sums: Tensor, faint: float,
        certain: Tensor | None = None,
    ) -> None:  # fmt: skip
        self._task, (k, d) = task, task.centers.shape
        self.centers = task.centers.double().clone(memory_format=torch.contiguous_format)
        self.seen = self.centers.to(opened.layout.dtype)
        self._known = torch.zeros(2 * RECORDS + 1, dtype=torch.float64, device=sums.device)
        self.status = self._known[-1:].view(torch.int32)
        self._history: list[float] = []
        self._sums, self._certain = sums, certain  # kept alive
        moving = _Moving(
            self.centers.data_ptr(), self.seen.data_ptr(), self._known.data_ptr(),
            self.status.data_ptr(), None if certain is None else certain.data_ptr(),
            task.tolerance, faint, k, d,
        )  # fmt: skip
        self._move = Launch(
            "moving.cu", "move_centers", sums.device, Grid(1, 512), Arguments(moving, sums),
            macros(opened.points.rows),
        )  # fmt: skip

    def run(self, iterate: Callable[[], None], prolong: Callable[[], None] | None = None) -> Ran:
        """Iterate.

        `iterate` puts one iteration on the stream, up to its sums. If its thresholds have not
        converged, `prolong` is called, after which `iterate` does more for them.
        """
        status, at_once, most = GOING, _AT_ONCE, self._task.max_iter
        try:
            while status == GOING and len(self._history) < most:
                for _ in range(min(at_once, most - len(self._history))):
                    iterate()
                    self._move()
                status, at_once = self._read(), min(2 * at_once, _MOST)
                if status == PAUSED and prolong is not None:
                    prolong()
                    self.status[0] = status = GOING
                    at_once = _AT_ONCE  # those after an iteration that is not certain are in vain
        except KeyboardInterrupt:
            self._read()
            return Ran(self.centers, self._history, settled=False, interrupted=True)
        return Ran(self.centers, self._history, status == SETTLED, status == EMPTY)

    def _read(self) -> int:
        """Wait, note the objective of each new iteration, and return the status."""
        known = self._known.cpu().numpy()
        status, count = known[-1:].view(np.int32).tolist()
        new = np.arange(len(self._history), count) % RECORDS
        self._history += known[:-1].reshape(RECORDS, 2)[new, 0].tolist()
        return status
