"""Few centers: one launch an iteration."""

import ctypes
from functools import cached_property

from torch import Tensor

from lloydformer.engines.cuda.hopper.shared import HopperKernels, WithCopy
from lloydformer.engines.cuda.launches import Grid, Launch
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.work import Work


class TinySteps(HopperKernels):
    """Few features, few centers: an iteration reads the rows and nothing else."""

    refills = False  # labels are not stored in each iteration

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.step = self._iterate(labels=0)

    @cached_property
    def _label(self) -> Launch:
        return self._iterate(labels=1)

    def _iterate(self, labels: int) -> Launch:
        d, k = self.points.n_features, self.work.n_clusters
        farthest = ctypes.c_float(self.points.reach * d**0.5 * 1.0001)
        constants = (("DIM", d), ("K", k), ("LABELS", labels))
        return self._launch(
            "tiny.cu", "iterate_tiny", Grid(2 * self.processors, 256),
            self._given(farthest), constants,
        )  # fmt: skip

    def begin(self, centers: Tensor, tolerance: float) -> None:
        self._begin(centers, tolerance, keep_sums=False)

    def assign(self) -> None:
        self._label()


class SmallSteps(WithCopy):
    """Few centers: one launch an iteration."""

    def __init__(self, points: Points, work: Work) -> None:
        super().__init__(points, work)
        self.width = 32 if points.n_features <= 32 else 64
        self.copy = self._copied(self.width, tile=16, fragments=False)
        self.step = self._iterate(fold=0)

    @cached_property
    def _label(self) -> Launch:
        return self._iterate(fold=1)

    def assign(self) -> None:
        self._label()

    def _iterate(self, fold: int) -> Launch:
        wide, k = self.width, 8 if self.work.n_clusters <= 8 else 16
        real_bytes, warps = self.points.rows.dtype.itemsize, 8
        shared = warps * k * (wide + 1) * 8 + k * wide * real_bytes + 3 * k * 4 + 256 + warps * 192
        blocks = (3 if wide == 32 else 1) * self.processors
        given = self._given(self.copy.numbers, self.copy.norms, self.work.largest, fold)
        return self._launch(
            "small.cu", "iterate_small", Grid(blocks, 32 * warps, shared + 64), given,
            (("D", wide), ("K", k), ("BLOCKS", blocks // self.processors)),
        )  # fmt: skip
