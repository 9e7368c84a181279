"""Trimmed and robust k-means on a GPU: their folds, thresholds and iterations, in CUDA C++.

Points have labels and distances already. Trimmed k-means finds radii by histograms of distances
and adds up the points within; robust k-means finds thresholds of scores by Michelot's steps and
adds up points with the weights of sparsemax (or of softmax).
"""

import ctypes
import sys
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.device_loop import DeviceLoop
from lloydformer.engines.cuda.group_sums import (
    SHARED_OF_TWO,
    allocate_partial,
    count_warps,
    pad_columns,
    prepare_reduction,
    reduce_blocks,
)
from lloydformer.engines.cuda.launch import Grid, Launch, count_processors
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import list_fields
from lloydformer.numerics.clusters import LOWEST
from lloydformer.plans.contract import IterationsResult
from lloydformer.plans.robust import (
    HighestScores,
    RobustIterations,
    RobustSums,
    SoftmaxWeights,
    SparsemaxWeights,
    SumsAboveThreshold,
    ThresholdSearch,
)
from lloydformer.plans.trimmed import DistanceHistogram, TrimmedSums

# Blocks per multiprocessor in kernels that keep sums in shared memory: `count_warps` gives each of
# two blocks half of it. Kernels without sums take four times as many.
_BLOCKS = 2
_MOST_WARPS = 8
# Ways to weigh points, as kernels/trimmed_robust.cu numbers them.
_WITHIN, _SPARSE, _EXPONENTIAL = range(3)
# Michelot's steps of an iteration; twice as many after one that they were too few for. Chosen by
# hand: a step that comes after the last one needed costs its launches alone.
_N_STEPS = 8


class ColumnsArgument(ctypes.Structure):
    """`struct Columns` of kernels/trimmed_robust.cu."""

    _fields_ = list_fields("pointer labels previous distances trimmed")


class ClustersArgument(ctypes.Structure):
    """`struct Clusters` of kernels/trimmed_robust.cu."""

    _fields_ = list_fields("pointer limit radius", "double gamma", "pointer status", "int k")


class MichelotArgument(ctypes.Structure):
    """`struct Michelot` of kernels/trimmed_robust.cu."""

    _fields_ = list_fields("pointer least limits masses at_best counted status", "int blocks k")


class WeighKernels:
    """Kernels that weigh the points of a session by their labels and distances."""

    def __init__(self, arrays: CudaPointArrays) -> None:
        self.arrays, self.points = arrays, arrays.points
        self.device, self.d = self.points.rows.device, self.points.n_features
        self.blocks = _BLOCKS * count_processors(self.device)

    def prepare(
        self, name: str, grid: Grid, columns: str, *arguments: Any, warps: int = _MOST_WARPS
    ) -> Launch:
        """Prepare a kernel that reads these columns of the session."""
        state = self.arrays.state
        pointers = {column: state.column(column).data_ptr() for column in columns.split()}
        given = self.points.argument, ColumnsArgument(**pointers), *arguments
        sizes = ("D", pad_columns(self.d)), ("WARPS", warps), ("LOWEST", str(LOWEST))
        macros = (*self.points.macros, *sizes)
        return Launch("trimmed_robust.cu", name, self.device, grid, *given, macros=macros)

    def prepare_best(self, gamma: float, least: Tensor) -> Launch:
        """Prepare a kernel that lowers numbers (k,) to the least -score of each cluster."""
        grid = Grid(4 * self.blocks, 256)
        return self.prepare("highest_scores", grid, "labels distances", gamma, least)

    def prepare_counts(
        self, gamma: float, limit: Tensor, *, equal: bool = False, status: Tensor | None = None
    ) -> tuple[Launch, Tensor]:
        """Prepare mass and weighted score of points above each cluster's limit.

        With `equal`, of points whose score is -limit. Returns the kernel and the numbers
        (blocks, 2 k) that it writes. The kernel does nothing if the status is not 0.
        """
        k = len(limit)
        # Sums for each lane, if eight warps of them fit: without conflicts between lanes.
        by_lane = _MOST_WARPS * 16 * k * 32 <= SHARED_OF_TWO
        of_warp = 16 * k * (32 if by_lane else 1)
        warps = count_warps(of_warp)
        partial = allocate_partial(self.device, self.blocks, 2 * k)
        pointer = None if status is None else status.data_ptr()
        clusters = ClustersArgument(limit.data_ptr(), None, gamma, pointer, k)
        given = clusters, int(equal), int(by_lane), partial
        grid = Grid(self.blocks, 32 * warps, of_warp * warps)
        launch = self.prepare("count_scores", grid, "labels distances", *given, warps=warps)
        return launch, partial

    def count(self, gamma: float, limit: Tensor, *, equal: bool) -> tuple[Tensor, Tensor]:
        """Return mass and weighted score (k,) of the points of `prepare_counts`."""
        limit = limit.contiguous()
        launch, partial = self.prepare_counts(gamma, limit, equal=equal)
        launch()
        mass, score = reduce_blocks(partial).view(len(limit), 2).T.contiguous()
        return mass, score

    def prepare_sums(
        self, mode: int, gamma: float, limit: Tensor, radius: Tensor
    ) -> tuple[Launch, Tensor]:
        """Prepare objective, changed points, sums and masses, with the weights of a mode.

        Returns the kernel and the numbers (blocks, 2 + k (d + 1)) that it writes.
        """
        k = max(len(limit), len(radius))
        of_warp = 8 * k * (self.d + 1)
        warps = count_warps(of_warp)
        partial = allocate_partial(self.device, self.blocks, 2 + k * (self.d + 1))
        columns = "labels previous distances" + (" trimmed" if mode == _WITHIN else "")
        clusters = ClustersArgument(limit.data_ptr(), radius.data_ptr(), gamma, None, k)
        grid = Grid(self.blocks, 32 * warps, of_warp * warps)
        launch = self.prepare("weighted_sums", grid, columns, clusters, mode, partial, warps=warps)
        return launch, partial

    def sum(self, mode: int, gamma: float, limit: Tensor, radius: Tensor) -> Any:
        """Return sums, masses, objective and the number of changed points."""
        launch, partial = self.prepare_sums(mode, gamma, limit, radius)
        launch()
        sums = reduce_blocks(partial)
        by_cluster = sums[2:].view(-1, self.d + 1)
        return by_cluster[:, : self.d], by_cluster[:, self.d], sums[0], sums[1].long()


def fold_distance_histogram(arrays: CudaPointArrays, fold: DistanceHistogram) -> Any:
    """Return masses by cluster and the next digit of the distance."""
    kernels = WeighKernels(arrays)
    counts = torch.zeros(len(fold.prefix), 256, dtype=torch.int64, device=kernels.device)
    given, grid = (fold.prefix.contiguous(), fold.shift, counts), Grid(4 * kernels.blocks, 256)
    kernels.prepare("distance_histogram", grid, "labels distances", *given)()
    return (counts.double() / arrays.points.mass_unit,)


def fold_highest_scores(arrays: CudaPointArrays, fold: HighestScores) -> Any:
    """Return the best score of each cluster, and the mass that attains it."""
    kernels, gamma = WeighKernels(arrays), float(fold.inverse_temperature)
    least = torch.full((fold.n_clusters,), torch.inf, dtype=torch.float64, device=kernels.device)
    kernels.prepare_best(gamma, least)()
    mass, _ = kernels.count(gamma, least, equal=True)
    return -least, mass


def fold_sums_above_threshold(arrays: CudaPointArrays, fold: SumsAboveThreshold) -> Any:
    """Return mass and weighted score of each cluster's points above its threshold."""
    gamma = float(fold.inverse_temperature)
    return WeighKernels(arrays).count(gamma, fold.threshold, equal=False)


def fold_trimmed_sums(arrays: CudaPointArrays, fold: TrimmedSums) -> Any:
    """Return sums over the points within their cluster's radius."""
    radius = fold.radius.contiguous()
    return WeighKernels(arrays).sum(_WITHIN, 0.0, radius, radius)


def fold_robust_sums(arrays: CudaPointArrays, fold: RobustSums) -> Any:
    """Return sums with the weights of robust k-means."""
    kernels, weigh = WeighKernels(arrays), fold.weigh
    gamma = float(weigh.inverse_temperature)
    if isinstance(weigh, SparsemaxWeights):
        limit = weigh.threshold.contiguous()
        return kernels.sum(_SPARSE, gamma, limit, limit)
    if isinstance(weigh, SoftmaxWeights):
        limit, radius = weigh.best.contiguous(), weigh.radius.to(arrays.layout.dtype).contiguous()
        return kernels.sum(_EXPONENTIAL, gamma, limit, radius)
    return None


class SparsemaxThresholds:
    """The thresholds (k,) of sparsemax, from labels and distances, by Michelot's algorithm.

    Lower bounds rise to the thresholds: each step takes the points above the last bounds.

    Attributes
    ----------
    limits : Tensor of shape (k,)
        The bounds, which become the thresholds.
    status : Tensor of shape (1,)
        1 if they are found, int32.
    first, steps : list of Launch
        Kernels for the first bounds, and for a number of steps.
    """

    def __init__(self, kernels: WeighKernels, gamma: float, k: int) -> None:
        fills = (0.0, 0.0, torch.inf, -torch.inf)
        self.limits, self._masses, self._least, self._lowest = (
            torch.full((k,), fill, dtype=torch.float64, device=kernels.device) for fill in fills
        )
        self.status = torch.zeros(1, dtype=torch.int32, device=kernels.device)
        best, at_best = kernels.prepare_counts(gamma, self._least, equal=True)
        every, of_every = kernels.prepare_counts(gamma, self._lowest)
        above, of_above = kernels.prepare_counts(gamma, self.limits, status=self.status)
        self._partial = at_best, of_every, of_above  # kernels have their addresses

        def prepare(name: str, counted: Tensor) -> Launch:
            tensors = (self._least, self.limits, self._masses, at_best, counted, self.status)
            pointers = (tensor.data_ptr() for tensor in tensors)
            given = MichelotArgument(*pointers, len(counted), k)
            return Launch("trimmed_robust.cu", name, kernels.device, Grid(1, 512), given)

        first = kernels.prepare_best(gamma, self._least)
        self.first = [first, best, every, prepare("first_limits", of_every)]
        self.steps = [above, prepare("raise_limits", of_above)] * _N_STEPS

    def double_steps(self) -> None:
        """Take twice as many steps from now on."""
        self.steps *= 2


def run_threshold_search(arrays: CudaPointArrays, task: ThresholdSearch) -> Tensor:
    """Return the thresholds (k,); the host reads the status after every few steps."""
    gamma = float(task.inverse_temperature)
    thresholds = SparsemaxThresholds(WeighKernels(arrays), gamma, task.n_clusters)
    for launch in thresholds.first:
        launch()
    while True:
        for launch in thresholds.steps:
            launch()
        if thresholds.status.item():
            return thresholds.limits


def run_robust_iterations(
    arrays: CudaPointArrays, task: RobustIterations
) -> IterationsResult | None:
    """Run whole iterations; None if there are no kernels for them."""
    k, gamma = len(task.centers), float(task.inverse_temperature)
    lloyd = arrays.lloyd_kernels(k)
    if lloyd is None:
        return None
    kernels = WeighKernels(arrays)
    thresholds = SparsemaxThresholds(kernels, gamma, k)
    limits = thresholds.limits
    weigh, partial = kernels.prepare_sums(_SPARSE, gamma, limits, limits)
    distances, labels = arrays.state.column("distances"), arrays.state.column("labels")
    add, sums = prepare_reduction(partial)
    # A cluster is empty if its mass is 0: any normal number is mass enough.
    loop = DeviceLoop(task, arrays, sums, sys.float_info.min, thresholds.status)
    arrays.labels_current = False

    def iterate() -> None:
        lloyd.begin(loop.centers, 0.0)
        lloyd.assign()
        labels.copy_(lloyd.state.assigned)
        lloyd.measure(distances)
        for launch in (*thresholds.first, *thresholds.steps, weigh, add):
            launch()

    return loop.run(iterate, thresholds.double_steps)
