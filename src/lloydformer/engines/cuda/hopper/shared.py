"""What the families of kernels share: packed arguments, launches, the float16 copy."""

from dataclasses import dataclass
from typing import Any

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


def in_range(points: Points) -> bool:
    """Do squares of the coordinates fit into float32?"""
    return 1 / _LARGE_RANGE < points.reach < _LARGE_RANGE


class HopperKernels:
    """What the families share: packed arguments, and launches of one file."""

    at_once = 32

    def __init__(self, points: Points, work: Work) -> None:
        self.points, self.work = points, work
        self.device = points.rows.device
        self.processors = n_processors(self.device)
        self._points, self._work = points_argument(points), work_argument(work)
        self._macros = macros(points.rows, points.weights)

    def _empty(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _zeros(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

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
        given = self._given(centers, self.work.tolerance, tolerance, int(not keep_sums))
        self._launch("prepare.cu", "begin", Grid(blocks, 256), given)()

    def measure(self, distances: Tensor) -> Tensor:
        blocks = 8 * self.processors
        partial = self._empty(blocks, dtype=torch.float64)
        width, lanes = row_shape(self.points.n_features)
        self._launch(
            "measure.cu", "measure", Grid(blocks, 256), self._given(distances, partial),
            (("D", width), ("LANES", lanes)),
        )()  # fmt: skip
        return partial.sum()


@dataclass(frozen=True)
class HalfCopy:
    """The float16 copy of the points: numbers, norms and residuals, and the largest norm."""

    numbers: Tensor
    norms: Tensor
    largest: Tensor
    padded: int


class WithCopy(HopperKernels):
    """Families that read a float16 copy of the points."""

    def _copied(self, width: int, *, tile: int, fragments: bool) -> HalfCopy:
        """A copy with so many columns, padded to whole tiles of rows."""
        padded = -(-self.points.n_rows // tile) * tile
        copy = HalfCopy(
            self._empty(padded, width, dtype=torch.float16),
            self._empty(padded, 2, dtype=torch.float32),
            self._zeros(1, dtype=torch.float32), padded,
        )  # fmt: skip
        in_float32 = self.points.rows.dtype == torch.float32 and in_range(self.points)
        given = Arguments(
            self._points, copy.numbers, copy.norms, copy.largest, padded, width, int(fragments)
        )
        self._launch(
            "prepare.cu", "prepare", Grid(8 * self.processors, 256), given,
            () if in_float32 else (("SCALED_DOUBLE", 1),),
        )()  # fmt: skip
        return copy
