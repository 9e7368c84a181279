"""Lloyd's iterations by the CUDA C++ kernels for Hopper.

Three families: few features and few centers, few centers, and many centers.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import (
    SHARED,
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
from lloydformer.engines.cuda.steps import Steps
from lloydformer.engines.cuda.work import Work

_TINY_FEATURES, _TINY_NUMBERS = 4, 24
_SMALL_CENTERS, _SMALL_FEATURES = 16, 64
_LARGE_FEATURES, _LARGE_CENTERS = 256, 4096
_ANEW = 2
"""Iterations at the beginning that add up all points: later ones move those that change."""
_LARGE_RANGE = 2.0**40
"""Coordinates up to it and down to its inverse are computed in float32 without scaling."""


def hopper_steps(points: Points, work: Work) -> Steps | None:
    """The family for this problem; None if there is none."""
    d, k = points.n_features, len(work.centers)
    plain = points.rows.dtype == torch.float32 and points.weights is None
    if d <= _TINY_FEATURES and k * d <= _TINY_NUMBERS and plain and in_range(points):
        return TinySteps(points, work)
    if k <= _SMALL_CENTERS and d <= _SMALL_FEATURES:
        return SmallSteps(points, work)
    if d <= _LARGE_FEATURES and k <= _LARGE_CENTERS:
        return LargeSteps(points, work)
    return None


def in_range(points: Points) -> bool:
    """Do squares of the coordinates fit into float32?"""
    return 1 / _LARGE_RANGE < points.reach < _LARGE_RANGE


class _Kernels:
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
class _Copy:
    """The float16 copy of the points: numbers, norms and residuals, and the largest norm."""

    numbers: Tensor
    norms: Tensor
    largest: Tensor
    padded: int


class _WithCopy(_Kernels):
    """Families that read a float16 copy of the points."""

    def _copied(self, width: int, *, tile: int, fragments: bool) -> _Copy:
        """A copy with so many columns, padded to whole tiles of rows."""
        padded = -(-self.points.n_rows // tile) * tile
        copy = _Copy(
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


class TinySteps(_Kernels):
    """Few features, few centers: an iteration reads the rows and nothing else."""

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.ticket = self._zeros(1, dtype=torch.int32)
        self.step, self._label = self._iterate(labels=0), self._iterate(labels=1)

    def _iterate(self, labels: int) -> Launch:
        d, k = self.points.n_features, len(self.work.centers)
        farthest = ctypes.c_float(self.points.reach * d**0.5 * 1.0001)
        constants = (("DIM", d), ("K", k), ("LABELS", labels))
        return self._launch(
            "tiny.cu", "iterate_tiny", Grid(2 * self.processors, 256),
            self._given(farthest, self.ticket), constants,
        )  # fmt: skip

    def begin(self, centers: Tensor, tolerance: float) -> None:
        self._begin(centers, tolerance, keep_sums=False)

    def assign(self) -> None:
        self._label()


class SmallSteps(_WithCopy):
    """Few centers: one launch an iteration."""

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.width = 32 if points.n_features <= 32 else 64
        self.copy = self._copied(self.width, tile=16, fragments=False)
        self.ticket = self._zeros(1, dtype=torch.int32)
        self.step, self.assign = self._iterate(fold=0), self._iterate(fold=1)

    def _iterate(self, fold: int) -> Launch:
        wide, k = self.width, 8 if len(self.work.centers) <= 8 else 16
        real_bytes, warps = self.points.rows.dtype.itemsize, 8
        shared = warps * k * (wide + 1) * 8 + k * wide * real_bytes + 3 * k * 4 + 256 + warps * 192
        blocks = (3 if wide == 32 else 1) * self.processors
        given = self._given(
            self.copy.numbers, self.copy.norms, self.copy.largest, self.ticket, fold
        )
        return self._launch(
            "small.cu", "iterate_small", Grid(blocks, 32 * warps, shared + 64), given,
            (("D", wide), ("K", k), ("BLOCKS", blocks // self.processors)),
        )  # fmt: skip


class _Many(ctypes.Structure):
    """`struct Many` of kernels/common.cuh."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "copy", "norms", "largest", "tiles", "halves", "facts", "center_norms", "partial",
            "ticket", "queued", "word", "best", "list", "counts", "starts",
        )),
        *((name, ctypes.c_int) for name in ("padded", "part", "parts", "each")),
    ]  # fmt: skip


class LargeSteps(_WithCopy):
    """Many centers: scores by wgmma, then close calls, sums and new centers."""

    at_once = 10

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.width = -(-points.n_features // 64) * 64
        self.columns, self.part, self.parts = self._cut(len(work.centers))
        self.copy = self._copied(self.width, tile=64, fragments=True)
        self.many = self._shared_by_kernels()
        self._build()

    def _cut(self, k: int) -> tuple[int, int, int]:
        """Columns of a matrix instruction, centers of a part in shared memory, parts."""
        if k <= 128:
            columns = -(-k // 8) * 8
            return columns, columns, 1
        most = min(1024, (SHARED - 2048) // (2 * self.width + 4) // 128 * 128)
        parts = -(-k // most)
        part = -(-k // (128 * parts)) * 128
        return 128, part, -(-k // part)

    def _shared_by_kernels(self) -> _Many:
        n, k, padded = self.points.n_rows, len(self.work.centers), self.part * self.parts
        rows, blocks = self.copy.padded, 2 * self.processors
        whole, single = torch.int32, torch.float32
        self.counters = self._zeros(3 + k, dtype=whole)
        self._tensors = {
            "copy": self.copy.numbers, "norms": self.copy.norms, "largest": self.copy.largest,
            "tiles": self._empty(padded, self.width, dtype=torch.float16),
            "halves": self._empty(padded, dtype=single),
            "facts": self._empty(3, dtype=single),
            "center_norms": self._empty(padded, 2, dtype=single),
            "partial": self._empty(padded, 2, dtype=torch.float64),
            "ticket": self.counters, "queued": self.counters[1:],
            "word": self._empty(self.parts, rows, dtype=whole),
            "best": self._empty(self.parts if self.parts > 1 else 0, rows, dtype=single),
            "list": self._empty(n, dtype=whole),
            "counts": self._empty(blocks, k, dtype=whole), "starts": self.counters[3:],
        }  # fmt: skip
        pointers = (tensor.data_ptr() for tensor in self._tensors.values())
        return _Many(*pointers, rows, self.part, self.parts, -(-n // blocks))

    def _build(self) -> None:
        k, size = len(self.work.centers), self.points.rows.dtype.itemsize
        groups = {64: 4, 128: 3}.get(self.width, 2)
        together = 1 if self.width > 128 or size == 8 else 4  # TOGETHER in settle.cu
        wide, given = (("D", self.width),), self._given(self.many)
        all_processors = self.processors // self.parts * self.parts
        shared = self.part * (2 * self.width + 4) + 1024
        self._assign = self._launch(
            "assign.cu", "assign", Grid(all_processors, 128 * groups, shared), given,
            (*wide, ("N", self.columns), ("GROUPS", groups)),
        )  # fmt: skip

        def settle(name: str, blocks: int, threads: int = 256, shared: int = 0) -> Launch:
            return self._launch("settle.cu", name, Grid(blocks, threads, shared), given, wide)

        eight, twice = 8 * self.processors, 2 * self.processors
        self._merge = settle("merge", eight)
        self._recheck = settle("recheck", 4 * self.processors, 256, together * k * size)
        self._move = settle("move", eight)
        self._add_all = (
            settle("count_labels", twice, 1024, 4 * k),
            settle("scan_counts", 1, 1024),
            settle("sort_rows", twice, 1024, 4 * k),
            settle("add_runs", -(-self.points.n_rows // 512)),
        )
        each = Grid(self.part * self.parts, self.width)
        self._update, self._pack_centers = (
            self._launch("settle.cu", "update", each, self._given(self.many, begin), wide)
            for begin in (0, 1)
        )

    def begin(self, centers: Tensor, tolerance: float) -> None:
        super().begin(centers, tolerance)
        self._pack_centers()
        self._left_anew = _ANEW

    def _label(self) -> None:
        self._assign()
        if self.parts > 1:
            self._merge()
        self._recheck()

    def assign(self) -> None:
        self._label()
        self._move()

    def step(self) -> None:
        self._label()
        if self._left_anew > 0:
            self._left_anew -= 1
            for launch in self._add_all:
                launch()
        else:
            self._move()
        self._update()
