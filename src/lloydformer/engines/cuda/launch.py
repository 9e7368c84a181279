"""Launches of kernels whose arguments are packed once: an iteration is the same call every time."""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.nvrtc import Constants, checked, driver, kernel
from lloydformer.engines.cuda.points import Points, is_vector
from lloydformer.engines.cuda.work import Work

SHARED = 227 * 1024
"""Bytes of shared memory that a block of a Hopper GPU may have."""


def _pointers(*names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_void_p) for name in names]


class PointsArgument(ctypes.Structure):
    """`struct Points` of kernels/common.cuh."""

    _fields_ = [
        *_pointers("rows", "origin", "weights"),
        *((name, ctypes.c_double) for name in ("half_unit", "sum_unit", "mass_unit")),
        ("n", ctypes.c_int), ("d", ctypes.c_int),
    ]  # fmt: skip


_WORK = (
    "centers", "seen", "assigned", "sums", "masses", "changed", "tolerance", "record", "status",
    "total", "ticket",
)  # fmt: skip


class WorkArgument(ctypes.Structure):
    """`struct Work` of kernels/common.cuh."""

    _fields_ = [
        *_pointers(*_WORK),
        ("k", ctypes.c_int), ("directions", ctypes.c_int),
    ]  # fmt: skip


def points_argument(points: Points) -> PointsArgument:
    weights = None if points.weights is None else points.weights.data_ptr()
    return PointsArgument(
        points.rows.data_ptr(), points.origin.data_ptr(), weights, points.half_unit,
        points.sum_unit, points.mass_unit, *points.rows.shape,
    )  # fmt: skip


def work_argument(work: Work) -> WorkArgument:
    parts = {name: work.address(name) for name in _WORK if name != "assigned"}
    return WorkArgument(
        assigned=work.assigned.data_ptr(), k=work.n_clusters, directions=int(work.directions),
        **parts,
    )  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """How a kernel is launched: blocks, threads of a block, bytes of dynamic shared memory.

    layers: gridDim.y, so a kernel sees its own layer as blockIdx.y.
    """

    blocks: int
    threads: int
    shared: int = 0
    layers: int = 1


class Arguments:
    """Arguments of kernels, packed once. Whoever makes them keeps the tensors alive.

    Integers are passed as C's int, floats as double; other types by ctypes.
    """

    def __init__(self, *arguments: Any) -> None:
        self._values = [_packed(argument) for argument in arguments]
        pointers = (ctypes.addressof(value) for value in self._values)
        self.pointers = (ctypes.c_void_p * len(self._values))(*pointers)


class Launch:
    """A kernel with its arguments; calling it puts it on the current stream."""

    def __init__(
        self,
        file: str,
        name: str,
        device: torch.device,
        grid: Grid,
        arguments: Arguments,
        constants: Constants = (),
    ) -> None:
        function = kernel(file, name, device, constants, grid.shared)
        self._before = (function, grid.blocks, grid.layers, 1, grid.threads, 1, 1, grid.shared)
        self._number, self._arguments = device.index or 0, arguments
        self._launch = driver().cuLaunchKernel

    def __call__(self) -> None:
        stream = ctypes.c_void_p(torch._C._cuda_getCurrentRawStream(self._number))
        status = self._launch(*self._before, stream, self._arguments.pointers, None)
        if status:
            checked(status)


def _packed(argument: Any) -> Any:
    if isinstance(argument, int):
        return ctypes.c_int(argument)
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    pointer = getattr(argument, "data_ptr", None)  # `isinstance` with Tensor takes a microsecond
    return argument if pointer is None else ctypes.c_void_p(pointer())


def macros(rows: Tensor, weights: Tensor | None = None) -> Constants:
    """What kernels are compiled for: precision, whole vectors, weights."""
    real = "double" if rows.dtype == torch.float64 else "float"
    return (
        ("REAL", real),
        ("VECTOR", int(is_vector(rows))),
        ("WEIGHTED", int(weights is not None)),
    )


@cache
def n_processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def row_shape(d: int) -> tuple[int, int]:
    """Columns that a kernel is compiled for, and threads that share a row."""
    if d <= 4:
        return 4, 1
    width = next(width for width in (32, 64, 128, 256) if d <= width)
    return width, 8 if width <= 64 else 16


def make_ready(device: torch.device) -> None:
    """Give this thread a CUDA context: torch makes one only when it needs it."""
    context = ctypes.c_void_p()
    driver().cuCtxGetCurrent(ctypes.byref(context))
    if not context:
        torch.cuda.synchronize(device)
