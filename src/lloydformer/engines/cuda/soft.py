"""Soft k-means on a GPU by kernels in CUDA C++: the fold `SoftSums`, and whole iterations."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.device_loop import DeviceLoop
from lloydformer.engines.cuda.group_sums import (
    allocate_partial,
    count_warps,
    pad_columns,
    prepare_reduction,
    reduce_blocks,
)
from lloydformer.engines.cuda.launch import Grid, Launch, count_processors
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import list_fields
from lloydformer.plans.contract import IterationsResult
from lloydformer.plans.soft import SoftIterations, SoftSums

# Number of centers whose sums a block keeps in registers, by the number of columns that the kernel
# is compiled for. A lane keeps centers * columns / 32 sums in float64: 16, 32, 32 and 32 numbers.
# Chosen by hand.
_CENTERS = {32: 16, 64: 16, 128: 8, 256: 4}
# Blocks per multiprocessor, chosen by hand; shared memory lets fewer run at a time.
_BLOCKS = 4
# If a cluster has less mass, the plain fold runs instead. The kernel computes the shares of a point
# relative to its largest one: those of a cluster that is far from all points fall below 1e-308, the
# smallest normal float64, and vanish. The plain fold computes them relative to the largest one of
# each cluster. 1e-200 leaves room for the spread of the shares within a cluster.
_MIN_MASS = 1e-200


class SoftArgument(ctypes.Structure):
    """`struct Soft` of kernels/soft.cu."""

    _fields_ = list_fields(
        "pointer centers", "double gamma", "pointer labels previous norms partial", "int k"
    )


class SoftKernels:
    """The kernels of one pass over the points.

    Parameters
    ----------
    arrays : CudaPointArrays
        The points, and the columns `labels` and `previous` of their state.
    centers : Tensor of shape (k, d)
        In the precision of the rows, contiguous. Kernels read them at each launch.
    gamma : float
        The inverse temperature.

    Attributes
    ----------
    partial : Tensor of shape (blocks, 2 + k (d + 1))
        Written by the pass: free energy, changed labels, then the sums and the mass of each center.
    launches : list of Launch
        The kernels, in their order: "mix"; before it "normalise", which computes the normaliser of
        each point's shares, if there are more centers than a block keeps in registers.
    """

    def __init__(self, arrays: CudaPointArrays, centers: Tensor, gamma: float) -> None:
        points, device, (k, d) = arrays.points, centers.device, centers.shape
        columns = pad_columns(d)
        chunk = min(k, _CENTERS[columns])
        only_chunk = k <= chunk
        # Shared memory, `struct Shared` of soft.cu. A warp has 32 rows: for each its shares of a
        # chunk in float64, and its columns, one more than needed against bank conflicts. All warps
        # of a block share the centers of a chunk in float64.
        warp_bytes = 32 * (8 * chunk + (columns + 1) * centers.dtype.itemsize)
        block_bytes = 8 * columns * chunk
        warps = count_warps(warp_bytes, block_bytes)
        blocks = _BLOCKS * count_processors(device)
        self.partial = allocate_partial(device, blocks, 2 + k * (d + 1))
        # Two numbers per point, from "normalise" to "mix"; a single chunk does not need them.
        n_norms = 0 if only_chunk else 2 * points.n_rows
        norms = torch.empty(n_norms, dtype=torch.float64, device=device)
        self._alive = centers, norms  # kernels have their addresses
        state = (arrays.state.column(name).data_ptr() for name in ("labels", "previous"))
        argument = SoftArgument(
            centers.data_ptr(), gamma, *state, norms.data_ptr(), self.partial.data_ptr(), k
        )
        macros = (*points.macros, ("D", columns), ("CHUNK", chunk), ("WARPS", warps))
        size = blocks, 32 * warps, warp_bytes * warps + block_bytes
        arguments = points.argument, argument
        self.launches = []
        if not only_chunk:
            first = Launch("soft.cu", "normalise", device, Grid(*size), *arguments, macros=macros)
            self.launches.append(first)
        grid = Grid(*size, -(-k // chunk))  # a layer of blocks for each chunk
        last = Launch("soft.cu", "mix", device, grid, *arguments, int(only_chunk), macros=macros)
        self.launches.append(last)


def fold_soft_sums(arrays: CudaPointArrays, fold: SoftSums) -> Any:
    """Return the summary of the fold: levels, sums, masses, free energy, number of changed labels.

    None if the mass of a cluster is below `_MIN_MASS`.
    """
    kernels = SoftKernels(arrays, fold.centers.contiguous(), fold.inverse_temperature)
    for launch in kernels.launches:
        launch()
    arrays.labels_current = False
    k, d = fold.centers.shape
    sums = reduce_blocks(kernels.partial)
    energy, changed, by_center = sums[0], sums[1], sums[2:].view(k, d + 1)
    masses = by_center[:, d].contiguous()
    if not masses.min().item() >= _MIN_MASS:
        return None
    summary = torch.zeros_like(masses), by_center[:, :d], masses, energy, changed.long()
    # Last: the plain fold, which runs after an error, compares labels with `previous`.
    arrays.state.column("previous").copy_(arrays.state.column("labels"))
    return summary


def run_soft_iterations(arrays: CudaPointArrays, task: SoftIterations) -> IterationsResult:
    """Run iterations of soft k-means until the stop rule of the task holds."""
    centers = task.centers.to(arrays.layout.dtype).clone(memory_format=torch.contiguous_format)
    kernels = SoftKernels(arrays, centers, task.inverse_temperature)
    add, sums = prepare_reduction(kernels.partial)
    loop = DeviceLoop(task, arrays, sums, _MIN_MASS)
    arrays.labels_current = False

    def iterate() -> None:
        centers.copy_(loop.rounded)
        for launch in (*kernels.launches, add):
            launch()

    return loop.run(iterate)
