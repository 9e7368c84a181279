"""Soft k-means on a GPU: the fold `SoftSums`, and whole iterations, by kernels in CUDA C++."""

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

# Centers whose sums a block keeps in registers, by its number of columns: a lane has the sums of
# columns / 32 features of each, in float64. 16, 32, 32 and 32 numbers; chosen by hand.
_CENTERS = {32: 16, 64: 16, 128: 8, 256: 4}
# Blocks per multiprocessor, chosen by hand; shared memory lets fewer run at a time.
_BLOCKS = 4
# Below this mass a cluster needs the running maximum of the plain fold: the kernel takes the
# exponential of each point's scores less their maximum, and float64 ends at 1e-308.
_FAINT = 1e-200


class SoftArgument(ctypes.Structure):
    """`struct Soft` of kernels/soft.cu."""

    _fields_ = list_fields(
        "pointer centers", "double gamma", "pointer labels previous norms partial", "int k"
    )


class SoftKernels:
    """The kernels of one pass over the points, from centers in the precision of the rows.

    Attributes
    ----------
    partial : Tensor of shape (blocks, 2 + k (d + 1))
        Written by the pass: free energy, changed labels, of each center its sums and mass.
    launches : list of Launch
        The kernels. With more centers than a block keeps in registers, the first one finds the
        normaliser of each point's shares.
    """

    def __init__(self, arrays: CudaPointArrays, centers: Tensor, gamma: float) -> None:
        points, device, (k, d) = arrays.points, centers.device, centers.shape
        wide, blocks = pad_columns(d), _BLOCKS * count_processors(device)
        chunk = min(k, _CENTERS[wide])
        # `struct Shared` of soft.cu: shares and rows of each warp; the centers of a block.
        of_warp = 32 * (8 * chunk + (wide + 1) * centers.dtype.itemsize)
        of_block = 8 * wide * chunk
        warps = count_warps(of_warp, of_block)
        self.partial = allocate_partial(device, blocks, 2 + k * (d + 1))
        n_norms = 0 if k <= chunk else 2 * points.n_rows
        norms = torch.empty(n_norms, dtype=torch.float64, device=device)
        self._alive = centers, norms  # kernels have their addresses
        state = (arrays.state.column(name).data_ptr() for name in ("labels", "previous"))
        argument = SoftArgument(
            centers.data_ptr(), gamma, *state, norms.data_ptr(), self.partial.data_ptr(), k
        )
        macros = (*points.macros, ("D", wide), ("CHUNK", chunk), ("WARPS", warps))
        size, given = (blocks, 32 * warps, of_warp * warps + of_block), (points.argument, argument)
        self.launches = []
        if k > chunk:
            first = Launch("soft.cu", "normalise", device, Grid(*size), *given, macros=macros)
            self.launches.append(first)
        grid, whole = Grid(*size, -(-k // chunk)), int(k <= chunk)
        last = Launch("soft.cu", "mix", device, grid, *given, whole, macros=macros)
        self.launches.append(last)


def fold_soft_sums(arrays: CudaPointArrays, fold: SoftSums) -> Any:
    """Return level, sums, masses, free energy and changed labels; None if a mass is too small."""
    kernels = SoftKernels(arrays, fold.centers.contiguous(), fold.inverse_temperature)
    for launch in kernels.launches:
        launch()
    arrays.labels_current = False
    k, d = fold.centers.shape
    sums = reduce_blocks(kernels.partial)
    energy, changed, by_center = sums[0], sums[1], sums[2:].view(k, d + 1)
    masses = by_center[:, d].contiguous()
    if not masses.min().item() >= _FAINT:
        return None
    summary = torch.zeros_like(masses), by_center[:, :d], masses, energy, changed.long()
    # Last: the plain fold, which runs after an error, compares labels with `previous`.
    arrays.state.column("previous").copy_(arrays.state.column("labels"))
    return summary


def run_soft_iterations(arrays: CudaPointArrays, task: SoftIterations) -> IterationsResult:
    """Run whole iterations."""
    centers = task.centers.to(arrays.layout.dtype).clone(memory_format=torch.contiguous_format)
    kernels = SoftKernels(arrays, centers, task.inverse_temperature)
    add, sums = prepare_reduction(kernels.partial)
    loop = DeviceLoop(task, arrays, sums, _FAINT)
    arrays.labels_current = False

    def iterate() -> None:
        centers.copy_(loop.rounded)
        for launch in (*kernels.launches, add):
            launch()

    return loop.run(iterate)
