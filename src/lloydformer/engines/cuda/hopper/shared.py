"""What the families of kernels share: packed arguments, launches, the float16 copy."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
    work_argument,
)
from lloydformer.engines.cuda.nvrtc import Constants
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.work import Work

_LARGE_RANGE = 2.0**40
"""Coordinates up to it and down to its inverse are computed in float32 without scaling."""
_MEASURING = 8
"""Blocks of a multiprocessor that measure distances."""
_REFILLED = 16
"""Empty clusters that are filled on the device, at most: `struct Lost` of kernels/between.cu."""


class _Lost(ctypes.Structure):
    """`struct Lost` of kernels/between.cu."""

    _fields_ = [("clusters", ctypes.c_int * _REFILLED), ("count", ctypes.c_int)]


def in_range(points: Points) -> bool:
    """Do squares of the coordinates fit into float32?"""
    return 1 / _LARGE_RANGE < points.reach < _LARGE_RANGE


class HopperKernels:
    """What the families share: packed arguments, and launches of one file."""

    at_once = 32
    refills = True
    """Can `refill` end an iteration that left clusters empty?"""

    def __init__(self, points: Points, work: Work) -> None:
        self.points, self.work = points, work
        self.device = points.rows.device
        self.processors = n_processors(self.device)
        self._points, self._work = points_argument(points), work_argument(work)
        self._macros = macros(points.rows, points.weights)

    def _empty(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _launch(
        self, file: str, name: str, grid: Grid, arguments: Arguments, constants: Constants = ()
    ) -> Launch:
        return Launch(file, name, self.device, grid, arguments, (*self._macros, *constants))

    def _given(self, *arguments: Any) -> Arguments:
        return Arguments(self._points, self._work, *arguments)

    def begin(self, centers: Tensor, tolerance: float) -> None:
        self._begin(centers, tolerance, keep_sums=True)

    def _begin(self, centers: Tensor, tolerance: float, *, keep_sums: bool) -> None:
        centers = centers.double().contiguous()
        blocks = min(-(-centers.numel() // 256), self.processors)
        self.work.started()
        self._work.assigned = self.work.assigned.data_ptr()
        given = self._given(centers, tolerance, int(not keep_sums))
        self._launch("between.cu", "begin", Grid(blocks, 256), given)()
        self._take_centers()

    @property
    def _take_centers(self) -> Callable[[], None]:
        """Called when `Work.seen` has changed, but not by an iteration."""
        return lambda: None

    def assign(self) -> None:
        raise NotImplementedError

    def land(self, *, last: bool) -> None:
        self._last.value = last
        self._land()
        self._take_centers()
        self.assign()
        self._measure_landed()

    def measure(self, distances: Tensor) -> Tensor:
        self._measure(distances, landed=0)()
        return self.work.total

    @cached_property
    def _last(self) -> ctypes.c_int:
        return ctypes.c_int()

    @cached_property
    def _land(self) -> Launch:
        blocks = min(-(-self.work.n_clusters * self.work.n_features // 256), self.processors)
        return self._launch("between.cu", "land", Grid(blocks, 256), self._given(self._last))

    @cached_property
    def _measure_landed(self) -> Launch:
        return self._measure(ctypes.c_void_p(), landed=1)

    def _measure(self, distances: Any, landed: int) -> Launch:
        width, lanes = row_shape(self.points.n_features)
        return self._launch(
            "measure.cu", "measure", Grid(_MEASURING * self.processors, 256),
            self._given(distances, self._partial, landed), (("D", width), ("LANES", lanes)),
        )  # fmt: skip

    @cached_property
    def _partial(self) -> Tensor:
        """Two numbers for each block of the kernels that measure."""
        return self._empty(_MEASURING * self.processors, 2, dtype=torch.float64)

    def refill(self, masses: np.ndarray, distances: Tensor) -> bool:
        empty = np.flatnonzero(masses == 0)
        if not self.refills or len(empty) > _REFILLED or self.work.directions:
            return False
        self._measure(distances, landed=0)()
        taken = self._empty(_REFILLED, dtype=torch.int32)
        for i in range(len(empty)):
            given = self._given(distances, self._partial, taken[i:])
            grid = Grid(2 * self.processors, 256)
            self._launch("between.cu", "take_farthest", grid, given)()
        lost = _Lost((ctypes.c_int * _REFILLED)(*empty.tolist()), len(empty))
        self._launch("between.cu", "refill", Grid(1, 1024), self._given(taken, lost))()
        self._take_centers()
        return True


@dataclass(frozen=True)
class HalfCopy:
    """The float16 copy of the points: numbers, and norms with residuals."""

    numbers: Tensor
    norms: Tensor
    padded: int


class WithCopy(HopperKernels):
    """Families that read a float16 copy of the points."""

    def _copied(self, width: int, *, tile: int, fragments: bool) -> HalfCopy:
        """A copy with so many columns, padded to whole tiles of rows."""
        padded = -(-self.points.n_rows // tile) * tile
        copy = HalfCopy(
            self._empty(padded, width, dtype=torch.float16),
            self._empty(padded, 2, dtype=torch.float32),
            padded,
        )  # fmt: skip
        in_float32 = self.points.rows.dtype == torch.float32 and in_range(self.points)
        given = Arguments(
            self._points, copy.numbers, copy.norms, self.work.largest, padded, width, int(fragments)
        )
        self._launch(
            "prepare.cu", "prepare", Grid(8 * self.processors, 256), given,
            () if in_float32 else (("SCALED_DOUBLE", 1),),
        )()  # fmt: skip
        return copy
