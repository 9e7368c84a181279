"""The CUDA engine: folds and tasks by kernels where there are any, the others by torch.

`FOLDS` and `TASKS` are the list of all kernels: start there.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeGuard

import torch

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.engines.chunked import ChunkedSession
from lloydformer.engines.cuda import gumbel_draws, lloyd, trimmed_robust, two_nearest
from lloydformer.engines.cuda.group_sums import SharedMemoryError
from lloydformer.engines.cuda.launch import ensure_context
from lloydformer.engines.cuda.nvrtc import CompileError
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.seeding import fold_oversampling, run_plus_plus_seeds
from lloydformer.engines.cuda.soft import fold_soft_sums, run_soft_iterations
from lloydformer.plans import assign, means, medoids, relocating, robust, seeding, soft
from lloydformer.plans.session import Fold, Task
from lloydformer.plans.symmetric import NearestCosts
from lloydformer.plans.trimmed import DistanceHistogram, TrimmedSums

# Runs a fold or a task on the points; returns None if it has no kernel for this problem.
KernelRunner = Callable[[CudaPointArrays, Any], Any | None]

FOLDS: dict[type, KernelRunner] = {
    # k-means and spherical k-means
    assign.Moments: lloyd.fold_moments,
    assign.NearestSums: lloyd.fold_nearest_sums,
    assign.NearestDistances: lloyd.fold_nearest_distances,
    assign.NearestCosines: lloyd.fold_nearest_distances,
    assign.Farthest: lloyd.fold_farthest,
    # soft k-means
    soft.SoftSums: fold_soft_sums,
    # trimmed and robust k-means
    DistanceHistogram: trimmed_robust.fold_distance_histogram,
    TrimmedSums: trimmed_robust.fold_trimmed_sums,
    robust.HighestScores: trimmed_robust.fold_highest_scores,
    robust.SumsAboveThreshold: trimmed_robust.fold_sums_above_threshold,
    robust.RobustSums: trimmed_robust.fold_robust_sums,
    # relocation: splitting clusters, then removing centers
    relocating.ClusterErrors: gumbel_draws.fold_cluster_errors,
    relocating.PointsByDistance: gumbel_draws.fold_points_by_distance,
    relocating.Halves: gumbel_draws.fold_halves,
    relocating.TwoNearest: two_nearest.fold_two_nearest,
    relocating.SecondNearestSums: two_nearest.fold_second_nearest_sums,
    # the paper's medoids, the learned layer, k-means||
    medoids.MedoidDraw: gumbel_draws.fold_medoid_draw,
    NearestCosts: two_nearest.fold_nearest_costs,
    seeding.Oversampling: fold_oversampling,
}
TASKS: dict[type, KernelRunner] = {
    means.LloydIterations: lloyd.run_lloyd_iterations,
    seeding.PlusPlusSeeds: run_plus_plus_seeds,
    soft.SoftIterations: run_soft_iterations,
    robust.RobustIterations: trimmed_robust.run_robust_iterations,
    robust.ThresholdSearch: trimmed_robust.run_threshold_search,
}
# The kernels of lloyd.py exist in Triton too; the others run in CUDA C++ alone.
_IN_TRITON = {kind for kind, run in (FOLDS | TASKS).items() if run.__module__ == lloyd.__name__}


class Cuda:
    """Runs folds on the GPU that the points are on."""

    name = "cuda"

    @staticmethod
    def reads(blocks: Blocks) -> TypeGuard[TensorBlocks]:
        """Return True if the kernels can read these data: dense rows in the memory of a GPU."""
        return isinstance(blocks, TensorBlocks) and blocks.device.type == "cuda"

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator["CudaSession"]:
        if not self.reads(blocks):
            raise ValueError(
                'engine: found "cuda" for data that are not on a GPU; use "native" or "chunked"'
            )
        with ExitStack() as resources, torch.cuda.device(blocks.device):
            ensure_context(blocks.device)
            session = CudaSession(blocks, 1, resources)
            resources.callback(session.close)
            yield session


class CudaSession(ChunkedSession):
    """Points on a GPU; folds and tasks without a kernel run as in the chunked engine."""

    def __init__(self, blocks: TensorBlocks, n_threads: int, resources: ExitStack) -> None:
        super().__init__(blocks, n_threads, resources)
        self.arrays = CudaPointArrays(blocks, self.state, super().fold)

    def fold(self, fold: Fold) -> Any:
        summary = None
        self.state.reclaim()
        # Out of memory is caught before the session forgets its labels: the plain fold, which
        # takes less memory, compares with them.
        with self._forget_on_error(), suppress(torch.OutOfMemoryError):
            summary = self._run_kernel(FOLDS, fold)
        if summary is not None:
            return summary
        self.arrays.labels_current = False
        return super().fold(fold)

    def run(self, task: Task) -> Any | None:
        if type(task) not in TASKS:
            return None
        self.state.reclaim()
        # A task may have changed labels when memory ends: forget them, then step by step.
        with suppress(torch.OutOfMemoryError), self._forget_on_error():
            return self._run_kernel(TASKS, task)
        return None

    def _run_kernel(self, table: dict[type, KernelRunner], work: Fold | Task) -> Any | None:
        """Run the kernel for a fold or a task; None if there is none."""
        kernel = table.get(type(work))
        if kernel is None or not (type(work) in _IN_TRITON or self.arrays.has_cpp_folds):
            return None
        try:
            return kernel(self.arrays, work)
        except SharedMemoryError:
            return None
        except CompileError as error:
            self.arrays.disable_cpp(error)
            return self._run_kernel(table, work)  # in Triton, or by torch

    def forget(self) -> None:
        super().forget()
        self.arrays.forget()

    def close(self) -> None:
        """Free the memory of the kernels; the arrays refer to this session, and it to them."""
        del self.arrays
