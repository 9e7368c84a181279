"""Launch kernels in CUDA C++ through the driver.

Arguments are packed once and a launch is prepared once, because an iteration repeats the same
calls: what is left per launch is one call of the driver through ctypes.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from lloydformer.engines.cuda.nvrtc import Macros, check_status, driver, load_kernel
from lloydformer.engines.cuda.points import DevicePoints

# Bytes of shared memory that a block of a Hopper GPU may have: 228 KiB less 1 KiB for the system.
SHARED_LIMIT = 227 * 1024


@dataclass(frozen=True)
class Grid:
    """Size of a launch.

    Attributes
    ----------
    blocks, threads : int
        Number of blocks, and threads of a block.
    shared : int
        Bytes of dynamic shared memory of a block.
    layers : int
        gridDim.y: a kernel sees its own layer as blockIdx.y.
    """

    blocks: int
    threads: int
    shared: int = 0
    layers: int = 1


class Launch:
    """A kernel with its arguments; calling it puts it on the current stream.

    Integers are passed as C's int, floats as double, tensors as pointers; other types are ctypes.
    The caller keeps tensors alive, and may change ctypes objects between calls: kernels get the
    values that they have when the launch is enqueued.
    """

    def __init__(
        self,
        file: str,
        name: str,
        device: torch.device,
        grid: Grid,
        *arguments: Any,
        macros: Macros = (),
    ) -> None:
        function = load_kernel(file, name, device, macros, grid.shared)
        self._before = (function, grid.blocks, grid.layers, 1, grid.threads, 1, 1, grid.shared)
        self._number, self._values = device.index or 0, list(arguments)
        for i, argument in enumerate(arguments):
            if isinstance(argument, int):
                self._values[i] = ctypes.c_int(argument)
            elif isinstance(argument, float):
                self._values[i] = ctypes.c_double(argument)
            # Not `isinstance` with Tensor: its metaclass makes that take a microsecond.
            elif hasattr(argument, "data_ptr"):
                self._values[i] = ctypes.c_void_p(argument.data_ptr())
        pointers = (ctypes.addressof(value) for value in self._values)
        self._pointers = (ctypes.c_void_p * len(arguments))(*pointers)
        self._launch = driver().cuLaunchKernel

    def __call__(self) -> None:
        # A private function, but the only one that gives the stream without creating an object.
        stream = ctypes.c_void_p(torch._C._cuda_getCurrentRawStream(self._number))
        status = self._launch(*self._before, stream, self._pointers, None)
        if status:
            check_status(status)


def prepare_row_kernel(
    points: DevicePoints, file: str, name: str, blocks: int, *arguments: Any, shared: int = 0
) -> Launch:
    """Prepare a kernel in which neighbouring threads share a row; blocks are per multiprocessor.

    Its first parameter is `struct Points`; macros ROW and LANES are those of `choose_row_tile`.
    """
    device, (row, lanes) = points.rows.device, choose_row_tile(points.n_features)
    grid = Grid(blocks * count_processors(device), 256, shared)
    macros = (*points.macros, ("ROW", row), ("LANES", lanes))
    return Launch(file, name, device, grid, points.argument, *arguments, macros=macros)


def choose_row_tile(d: int) -> tuple[int, int]:
    """Return the columns that a kernel is compiled for, and the threads that share a row.

    Few widths keep the number of compiled variants low. A thread holds 4 to 16 numbers of a row in
    registers, so that lanes of a warp read whole sectors of memory; chosen by hand.
    """
    if d <= 4:
        return 4, 1
    width = next(width for width in (32, 64, 128, 256) if d <= width)
    return width, 8 if width <= 64 else 16


@cache
def count_processors(device: torch.device) -> int:
    """Return the number of multiprocessors: 132 on an H200."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def ensure_context(device: torch.device) -> None:
    """Give this thread a CUDA context: torch creates one only when it first needs it."""
    context = ctypes.c_void_p()
    driver().cuCtxGetCurrent(ctypes.byref(context))
    if not context:
        torch.cuda.synchronize(device)
