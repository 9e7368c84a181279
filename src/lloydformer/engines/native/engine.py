"""The native engine: kernels in C++ for points in memory, dense or sparse."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeGuard

import numpy as np
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.missing import FoundMissing, MaskedBlocks
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.chunked import ChunkedSession, DrawnBy
from lloydformer.engines.native.folds import FOLDS, MASKED_FOLDS, SPARSE_FOLDS
from lloydformer.engines.native.installed import instruction_set, kernels
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.engines.native.tasks import SPARSE_TASKS, TASKS, in_one_call
from lloydformer.engines.thread_pool import allowed_threads, startable
from lloydformer.plans.session import Fold, Task

# Data of at most this many numbers are computed by one thread: waking others would take longer than
# they save. But comparing them with many centers takes longer: see `threads_for`. docs/speed.md
# mentions this size.
_ONE_THREAD = 1 << 18
# Most bytes of bounds for data that are mapped from a file: bounds are kept in memory, and such
# data may be larger than the memory. docs/speed.md mentions this size.
_MAPPED_BOUNDS = 1 << 27


def threads_for(size: int, wanted: int | None = None, n_clusters: int = 1) -> int:
    """Return the number of threads for data of `size` numbers and `n_clusters`.

    1 for small data, unless a pass over them takes so long that one call runs no whole loop;
    otherwise `wanted`, or as many as are allowed, if they can be started.
    """
    small = size <= _ONE_THREAD and in_one_call(size, 1, n_clusters)
    return 1 if small else startable(wanted or allowed_threads())


def column_ends(points: np.ndarray) -> np.ndarray | None:
    """Return the smallest and the largest number of each column of an array (n, d), as (2, d).

    None if a number is not finite, or without kernels.
    """
    if instruction_set() is None:
        return None
    ends = np.empty((2, points.shape[1]), points.dtype)
    return ends if kernels().column_ends(points, ends, threads_for(points.size)) else None


def find_missing(points: np.ndarray) -> FoundMissing | None:
    """Return the missing values (NaN) of an array (n, d); None without kernels."""
    if instruction_set() is None:
        return None
    filled = scratch_array(*points.shape, dtype=points.dtype)
    observed = np.empty(points.shape, dtype=np.uint8)
    means, counts = np.empty(points.shape[1]), np.empty(points.shape[1], dtype=np.int64)
    missing = np.empty(3, dtype=np.int64)
    kernels().fill_missing(points, filled, observed, means, counts, missing)
    n_missing, n_empty, first = missing.tolist()
    return FoundMissing(filled, observed.view(bool), counts, n_missing, n_empty, first)


class Native:
    """Runs folds with kernels in C++.

    Labels are those of exact arithmetic wherever float64 can tell, for float32 rows as well.

    Parameters
    ----------
    n_threads : int, optional
        Number of threads; by default as many as both torch and OpenMP (`threadpoolctl`) allow.
    bounded : bool
        Skip points whose label cannot have changed. Labels are the same either way.
    screened : bool, optional
        Rule out centers by products in int8 before the exact comparison; by default where it is
        faster. Labels are the same either way.
    instruction_set : str
        "avx512", "avx2" or "portable"; by default the widest one of this machine.
    """

    name = "native"

    def __init__(
        self,
        n_threads: int | None = None,
        *,
        bounded: bool = True,
        screened: bool | None = None,
        instruction_set: str = "",
    ) -> None:
        kernels().isa(instruction_set)
        self.n_threads, self.bounded, self.screened = n_threads, bounded, screened
        self.instruction_set = instruction_set

    @staticmethod
    def reads(blocks: Blocks) -> TypeGuard[TensorBlocks | SparseBlocks]:
        """Return True if the kernels can read these data: contiguous rows in CPU memory."""
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
            n_threads = self.n_threads or allowed_threads()
            session = NativeSession(blocks, n_threads, resources, self._open_kernels(blocks))
            resources.callback(session.close)
            yield session

    def _open_kernels(self, blocks: TensorBlocks | SparseBlocks) -> Any:
        """Return kernels that read these rows in place, without a copy."""
        weights = blocks.sample_weight
        shared = {
            "weights": None if weights is None else weights.contiguous().numpy(),
            "directions": blocks.directions,
            "leaf": blocks.leaf,
            "isa": self.instruction_set,
        }
        if isinstance(blocks, SparseBlocks):
            matrix = blocks.matrix
            # SciPy may hold the two in different types; the kernels are compiled for one.
            index = np.result_type(matrix.indptr, matrix.indices)
            return kernels().CsrFolds(
                starts=matrix.indptr.astype(index, copy=False),
                features=matrix.indices.astype(index, copy=False),
                values=matrix.data,
                d=matrix.shape[1],
                largest=blocks.ends.abs().max().item(),
                n_threads=threads_for(matrix.nnz, self.n_threads),
                **shared,
            )
        scaling = blocks.scaling
        rows = [blocks.origin, *([] if scaling is None else [scaling.shift, scaling.scale])]
        origin, *scaled = (row.to(blocks.dtype).contiguous().numpy() for row in rows)
        shift, scale = scaled or (None, None)
        return kernels().Folds(
            points=blocks.points.numpy(),
            origin=origin,
            shift=shift,
            scale=scale,
            largest_square=blocks.squared_norm_bound,
            mapped=blocks.mapped,
            n_threads=threads_for(blocks.points.numel(), self.n_threads, blocks.n_clusters),
            bounds_bytes=(_MAPPED_BOUNDS if blocks.mapped else sys.maxsize) if self.bounded else 0,
            # Data that are mapped from a file may be larger than the memory.
            int8_bytes=0 if blocks.mapped else sys.maxsize,
            screening={None: 0, False: 1, True: 2}[self.screened],
            **shared,
        )


class NativeSession(ChunkedSession):
    """A session that runs folds and tasks by kernels, and other folds as the chunked engine does.

    Attributes
    ----------
    points : OpenPoints
        The points, opened for the kernels.
    """

    def __init__(
        self,
        blocks: TensorBlocks | SparseBlocks,
        n_threads: int,
        resources: ExitStack,
        kernels: Any,
    ) -> None:
        super().__init__(blocks, n_threads, resources)
        self._folds, self._tasks = FOLDS, TASKS
        if isinstance(blocks, SparseBlocks):
            self._folds, self._tasks = SPARSE_FOLDS, SPARSE_TASKS
        elif isinstance(blocks, MaskedBlocks):
            self._folds, self._tasks = MASKED_FOLDS, {}
        self.points = OpenPoints(kernels, blocks, self.state)

    def fold(self, fold: Fold) -> Any:
        # The plain fold runs if there is no kernel, if the kernel declines before it reads a point
        # (raw is None), or if it declines after its pass, because of the result (summary is None).
        kernel = self._folds.get(type(fold))
        raw = None if kernel is None else kernel.run(self.points, fold)
        if kernel is None or raw is None:
            return self.plain_fold(fold)
        summary = kernel.finish(fold, raw)
        if summary is not None:
            return summary
        # The kernel has changed the state: `instead` corrects what the plain fold computes from it.
        return kernel.instead(self.plain_fold(fold), raw)

    def plain_fold(self, fold: Fold) -> Any:
        """Run a fold as in the chunked engine."""
        self.points.leaf_masses = None
        return super().plain_fold(fold)

    def run(self, task: Task) -> Any | None:
        # None, from here or from the function of the task: the caller loops over folds instead.
        kernel = self._tasks.get(type(task))
        return None if kernel is None else kernel(self.points, task)

    def leaf_masses(self, by: DrawnBy) -> Tensor:
        # Set by `NewSeed`; every kernel and every plain fold resets it.
        known = self.points.leaf_masses if by == "distance" else None
        return super().leaf_masses(by) if known is None else known

    def forget(self) -> None:
        self.points.forget()

    def close(self) -> None:
        """End the threads of the kernels and free their memory."""
        self.points.kernels = None
