"""Robust k-means on a GPU: thresholds and whole iterations that do not wait for the host."""

import ctypes
import sys

import torch
from torch import Tensor

from lloydformer.engines.cuda.device_loop import DeviceLoop
from lloydformer.engines.cuda.launches import Arguments, Grid, Launch
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.partial_sums import adding
from lloydformer.engines.cuda.weighing import SPARSE, WeighKernels, weigh_kernels
from lloydformer.plans.contract import Ran
from lloydformer.plans.robust import RobustIterations, Thresholds

_ROUNDS = 8
"""Michelot steps of an iteration; twice as many after one that they were too few for."""


class _Rounds(ctypes.Structure):
    """`struct Rounds` of kernels/weigh.cu."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "least", "limits", "masses", "at_best", "counted", "status",
        )),
        ("blocks", ctypes.c_int), ("k", ctypes.c_int),
    ]  # fmt: skip


class _Limits:
    """The thresholds (k,) of sparsemax, from labels and distances in the state of the points.

    Attributes
    ----------
    limits : Tensor of shape (k,)
        The thresholds.
    status : Tensor of shape (1,)
        1 if they are found, int32.
    first, rounds : list of Launch
        What finds lower bounds, and what brings them nearer.
    """

    def __init__(self, kernels: WeighKernels, gamma: float, k: int) -> None:
        def numbers(value: float) -> Tensor:
            return torch.full((k,), value, dtype=torch.float64, device=kernels.device)

        self.limits, self._masses = numbers(0.0), numbers(0.0)
        self._least, self._lowest = numbers(torch.inf), numbers(-torch.inf)
        self.status = torch.zeros(1, dtype=torch.int32, device=kernels.device)
        best = kernels.counting(gamma, self._least, equal=True)
        every = kernels.counting(gamma, self._lowest)
        above = kernels.counting(gamma, self.limits, status=self.status)
        self.known = best is not None and every is not None and above is not None
        if best is None or every is None or above is None:
            return
        self._partial = best[1], every[1], above[1]

        def launch(name: str, counted: Tensor) -> Launch:
            tensors = (self._least, self.limits, self._masses, best[1], counted, self.status)
            pointers = (tensor.data_ptr() for tensor in tensors)
            given = Arguments(_Rounds(*pointers, len(counted), k))
            return Launch("weigh.cu", name, kernels.device, Grid(1, 512), given)

        first = kernels.finding_best(gamma, self._least)
        self.first = [first, best[0], every[0], launch("first_limits", every[1])]
        self.rounds = [above[0], launch("raise_limits", above[1])] * _ROUNDS

    def prolong(self) -> None:
        """Twice as many steps from now on."""
        self.rounds *= 2


def thresholds(opened: PointsOnGpu, task: Thresholds) -> Tensor | None:
    """Michelot's steps on the device, looked at after every few of them."""
    kernels = weigh_kernels(opened)
    if kernels is None:
        return None
    limits = _Limits(kernels, float(task.inverse_temperature), task.n_clusters)
    if not limits.known:
        return None
    for launch in limits.first:
        launch()
    while True:
        for launch in limits.rounds:
            launch()
        if limits.status.item():
            return limits.limits


def robust_iterations(opened: PointsOnGpu, task: RobustIterations) -> Ran | None:
    """Whole iterations on the device."""
    kernels, (k, _) = weigh_kernels(opened), task.centers.shape
    known = None if kernels is None else opened.steps(k)
    if kernels is None or known is None:
        return None
    gamma, (work, steps) = float(task.inverse_temperature), known
    limits = _Limits(kernels, gamma, k)
    weighing = kernels.weighing(SPARSE, gamma, limits.limits, limits.limits)
    if not limits.known or weighing is None:
        return None
    distances, labels = opened.state.column("distances"), opened.state.column("labels")
    add, sums = adding(weighing[1])
    loop = DeviceLoop(task, opened, sums, sys.float_info.min, limits.status)
    opened.labelled = False

    def iterate() -> None:
        steps.begin(loop.centers, 0.0)
        steps.assign()
        labels.copy_(work.assigned)
        steps.measure(distances)
        for launch in (*limits.first, *limits.rounds, weighing[0], add):
            launch()

    return loop.run(iterate, limits.prolong)
