"""The native engine: kernels in C++ for points in memory, dense or sparse."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeGuard

import numpy as np
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.chunked import ChunkedSession, DrawnBy
from lloydformer.engines.native.folds import FOLDS, SPARSE_FOLDS, KernelFold
from lloydformer.engines.native.installed import instruction_set, kernels
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.engines.native.tasks import SPARSE_TASKS, TASKS
from lloydformer.engines.thread_pool import allowed_threads, startable
from lloydformer.plans.session import Fold, Task

_SMALL = 1 << 18
"""Problems of at most so many numbers use one thread: a second one would not pay."""
_ROOM = 1 << 27
"""Bytes of bounds for data that are mapped from a file."""


def threads_for(size: int, wanted: int | None = None) -> int:
    """Threads for kernels that read so many numbers: `wanted`, or as many as are allowed."""
    return 1 if size <= _SMALL else startable(wanted or allowed_threads())


def column_ends(points: np.ndarray) -> np.ndarray | None:
    """The smallest and the largest number of each column of an array (n, d), (2, d).

    None, if a number is not finite, or if there are no kernels.
    """
    if instruction_set() is None:
        return None
    ends = np.empty((2, points.shape[1]), points.dtype)
    return ends if kernels().column_ends(points, ends, threads_for(points.size)) else None


class Native:
    """Runs folds with kernels in C++.

    Labels are those of exact arithmetic wherever float64 can tell, also for float32.

    Parameters
    ----------
    n_threads : int, optional
        By default as many as both torch and OpenMP (`threadpoolctl`) are allowed.
    bounded : bool
        Skip points whose label cannot have changed. Labels are the same either way.
    instruction_set : str
        "avx512", "avx2" or "portable"; by default the widest one of this machine.
    """

    name = "native"

    def __init__(
        self, n_threads: int | None = None, *, bounded: bool = True, instruction_set: str = ""
    ) -> None:
        kernels().isa(instruction_set)
        self.n_threads, self.bounded, self.instruction_set = n_threads, bounded, instruction_set

    @staticmethod
    def reads(blocks: Blocks) -> TypeGuard[TensorBlocks | SparseBlocks]:
        """Can the kernels read these data? Rows must lie one after the other in CPU memory."""
        return isinstance(blocks, SparseBlocks) or (
            isinstance(blocks, TensorBlocks)
            and blocks.device.type == "cpu"
            and blocks.points.is_contiguous()
        )

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator["NativeSession"]:
        if not self.reads(blocks):
            raise ValueError(
                'engine: found "native" for data that are not rows in CPU memory; use "chunked"'
            )
        with ExitStack() as resources:
            if isinstance(blocks, SparseBlocks):
                opened = self._sparse_kernels(blocks)
            else:
                opened = self._kernels(blocks)
            n_threads = self.n_threads or allowed_threads()
            session = NativeSession(blocks, n_threads, resources, opened)
            resources.callback(session.close)
            yield session

    def _kernels(self, blocks: TensorBlocks) -> Any:
        n_threads = threads_for(blocks.points.numel(), self.n_threads)
        scaling = blocks.scaling
        rows = [blocks.origin, *([] if scaling is None else [scaling.shift, scaling.scale])]
        origin, *scaled = (row.to(blocks.dtype).contiguous().numpy() for row in rows)
        shift, scale = scaled or (None, None)
        weights = blocks.sample_weight
        return kernels().Folds(
            blocks.points.numpy(), origin, shift, scale,
            None if weights is None else weights.contiguous().numpy(), blocks.directions,
            blocks.squared_norm_bound, blocks.mapped, n_threads, self._room(blocks), blocks.leaf,
            self.instruction_set,
        )  # fmt: skip

    def _sparse_kernels(self, blocks: SparseBlocks) -> Any:
        matrix, weights = blocks.matrix, blocks.sample_weight
        index = np.result_type(matrix.indptr, matrix.indices)
        starts, features = (a.astype(index, copy=False) for a in (matrix.indptr, matrix.indices))
        return kernels().CsrFolds(
            starts, features, matrix.data, matrix.shape[1],
            None if weights is None else weights.contiguous().numpy(), blocks.directions,
            blocks.ends.abs().max().item(), threads_for(matrix.nnz, self.n_threads), blocks.leaf,
            self.instruction_set,
        )  # fmt: skip

    def _room(self, blocks: TensorBlocks) -> int:
        """Bytes that bounds may take in all: they are kept in memory, and mapped data are large."""
        if not self.bounded:
            return 0
        return _ROOM if blocks.mapped else sys.maxsize


class NativeSession(ChunkedSession):
    """Folds with a kernel run in C++, all others as in the chunked engine."""

    def __init__(
        self,
        blocks: TensorBlocks | SparseBlocks,
        n_threads: int,
        resources: ExitStack,
        kernels: Any,
    ) -> None:
        super().__init__(blocks, n_threads, resources)
        is_sparse = isinstance(blocks, SparseBlocks)
        self._folds = SPARSE_FOLDS if is_sparse else FOLDS
        self._tasks = SPARSE_TASKS if is_sparse else TASKS
        self.points = OpenPoints(kernels, blocks, self.state)

    def fold(self, fold: Fold) -> Any:
        kernel = self._folds.get(type(fold))
        raw = None if kernel is None else self.raw(kernel, fold)
        if kernel is None or raw is None:
            return self.plain_fold(fold)
        summary = kernel.finish(fold, raw)
        return kernel.instead(self.plain_fold(fold), raw) if summary is None else summary

    def raw(self, kernel: KernelFold, fold: Fold) -> Any | None:
        """Run the kernel of a fold; None if the plain fold must run instead."""
        self.state.reclaim()
        self.points.leaf_masses = None
        with self._all_or_forgotten():
            return kernel.run(self.points, fold)

    def plain_fold(self, fold: Fold) -> Any:
        """Run a fold as in the chunked engine."""
        self.points.leaf_masses = None
        return super().fold(fold)

    def run(self, task: Task) -> Any | None:
        kernel = self._tasks.get(type(task))
        if kernel is None:
            return None
        self.state.reclaim()
        with self._all_or_forgotten():
            return kernel(self.points, task)

    def leaf_masses(self, by: DrawnBy) -> Tensor:
        known = self.points.leaf_masses if by == "distance" else None
        return super().leaf_masses(by) if known is None else known

    def forget(self) -> None:
        super().forget()
        self.points.fresh = True

    def close(self) -> None:
        """End the threads of the kernels and free their memory."""
        self.points.kernels = None
