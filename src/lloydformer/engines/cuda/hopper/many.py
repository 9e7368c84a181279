"""Many centers: scores by wgmma, then close calls, sums and new centers."""

import ctypes
from functools import cached_property

import torch
from torch import Tensor

from lloydformer.engines.cuda.hopper.shared import WithCopy
from lloydformer.engines.cuda.launches import SHARED, Arguments, Grid, Launch
from lloydformer.engines.cuda.nvrtc import Constants
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.work import Work

_ANEW = 2
"""Iterations at the beginning that add up all points: later ones move those that change."""
_RECHECKING = 56 * 1024
"""Bytes of shared memory for rows that are compared with all centers: four blocks fit."""


class _Many(ctypes.Structure):
    """`struct Many` of kernels/common.cuh."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "copy", "norms", "largest", "tiles", "halves", "facts", "center_norms", "partial",
            "queued", "word", "best", "list", "counts", "starts",
        )),
        *((name, ctypes.c_int) for name in ("padded", "part", "parts", "each")),
    ]  # fmt: skip


class LargeSteps(WithCopy):
    """Many centers: scores by wgmma, then close calls, sums and new centers."""

    at_once = 20
    _left_anew = 0

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.width = -(-points.n_features // 64) * 64
        self.columns, self.part, self.parts = self._cut(work.n_clusters)
        self.copy = self._copied(self.width, tile=64, fragments=True)
        self.many = self._shared_by_kernels()

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
        n, k, padded = self.points.n_rows, self.work.n_clusters, self.part * self.parts
        rows, blocks = self.copy.padded, 2 * self.processors
        whole, single = torch.int32, torch.float32
        self.counters = torch.zeros(2 + k, dtype=whole, device=self.device)
        self._tensors = {
            "copy": self.copy.numbers, "norms": self.copy.norms, "largest": self.work.largest,
            "tiles": self._empty(padded, self.width, dtype=torch.float16),
            "halves": self._empty(padded, dtype=single),
            "facts": self._empty(3, dtype=single),
            "center_norms": self._empty(padded, 2, dtype=single),
            "partial": self._empty(padded, 2, dtype=torch.float64),
            "queued": self.counters,
            "word": self._empty(self.parts, rows, dtype=whole),
            "best": self._empty(self.parts if self.parts > 1 else 0, rows, dtype=single),
            "list": self._empty(n, dtype=whole),
            "counts": self._empty(blocks, k, dtype=whole), "starts": self.counters[2:],
        }  # fmt: skip
        pointers = (tensor.data_ptr() for tensor in self._tensors.values())
        return _Many(*pointers, rows, self.part, self.parts, -(-n // blocks))

    @cached_property
    def _assign(self) -> Launch:
        groups = {64: 4, 128: 3}.get(self.width, 2)
        processors = self.processors // self.parts * self.parts
        shared = self.part * (2 * self.width + 4) + 1024
        return self._launch(
            "assign.cu", "assign", Grid(processors, 128 * groups, shared), self._all_given,
            (("D", self.width), ("N", self.columns), ("GROUPS", groups),
             ("TILES", self.part // self.columns)),
        )  # fmt: skip

    @cached_property
    def _merge(self) -> Launch:
        return self._settle("merge", 8 * self.processors)

    @cached_property
    def _recheck(self) -> Launch:
        return self._settle("recheck", 4 * self.processors, shared=self._together * self._compared)

    @property
    def _compared(self) -> int:
        """Bytes of shared memory for a row that is compared with all centers."""
        return (self.width + self.work.n_clusters) * self.points.rows.dtype.itemsize

    @cached_property
    def _together(self) -> int:
        """Rows that a block compares with all centers at once."""
        return next(count for count in (16, 8, 4, 2, 1) if count * self._compared <= _RECHECKING)

    @cached_property
    def _move(self) -> Launch:
        return self._settle("move", 8 * self.processors)

    @cached_property
    def _add_all(self) -> tuple[Launch, ...]:
        blocks, shared = 2 * self.processors, 4 * self.work.n_clusters
        return (
            self._settle("count_labels", blocks, 1024, shared),
            self._settle("scan_counts", 1, 1024),
            self._settle("sort_rows", blocks, 1024, shared),
            self._settle("add_runs", -(-self.points.n_rows // 512)),
        )

    @cached_property
    def _update(self) -> Launch:
        return self._updating(begin=0)

    @cached_property
    def _take_centers(self) -> Launch:
        return self._updating(begin=1)

    def _updating(self, begin: int) -> Launch:
        return self._launch(
            "settle.cu", "update", Grid(self.part * self.parts, self.width),
            self._given(self.many, begin), self._settling,
        )  # fmt: skip

    def _settle(self, name: str, blocks: int, threads: int = 256, shared: int = 0) -> Launch:
        grid = Grid(blocks, threads, shared)
        return self._launch("settle.cu", name, grid, self._all_given, self._settling)

    @property
    def _settling(self) -> Constants:
        return ("D", self.width), ("TOGETHER", self._together)

    @cached_property
    def _all_given(self) -> Arguments:
        return self._given(self.many)

    def begin(self, centers: Tensor, tolerance: float) -> None:
        super().begin(centers, tolerance)
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
