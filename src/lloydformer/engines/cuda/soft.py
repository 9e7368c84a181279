"""Soft k-means on a GPU: the fold `Shares` by kernels in CUDA C++."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP
from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
)
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.partial_sums import (
    MOST_FEATURES,
    added,
    columns,
    partial_rows,
    warps_that_fit,
)
from lloydformer.plans.soft import Shares

_CENTERS = {32: 16, 64: 16, 128: 8, 256: 4}
"""Centers whose sums a block keeps in registers, by its number of columns."""
_BLOCKS = 4
"""Blocks of a multiprocessor."""
_FAINT = 1e-200
"""Below this mass a cluster needs the running maximum of the plain fold."""


class _Soft(ctypes.Structure):
    """`struct Soft` of kernels/soft.cu."""

    _fields_ = [
        ("centers", ctypes.c_void_p), ("gamma", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("labels", "previous", "norms", "partial")),
        ("k", ctypes.c_int),
    ]  # fmt: skip


def shares(opened: PointsOnGpu, fold: Shares) -> Any:
    """The summary of the fold; None if there is no kernel for it."""
    (k, d), points = fold.centers.shape, opened.points
    if opened.kernels != CUDA_CPP or opened.too_many_rows or d > MOST_FEATURES:
        return None
    wide, rows, device = columns(d), points.rows, points.rows.device
    chunk = min(k, _CENTERS[wide])
    centers, of_a_warp = 8 * wide * chunk, 32 * (8 * chunk + (wide + 1) * rows.dtype.itemsize)
    warps = warps_that_fit(of_a_warp, centers)
    if warps is None:
        return None
    blocks, alone = _BLOCKS * n_processors(device), k <= chunk
    partial = partial_rows(device, blocks, 2 + k * (d + 1))
    seen = fold.centers.contiguous()
    norms = torch.empty(0 if alone else 2 * len(rows), dtype=torch.float64, device=device)
    state = (opened.state.column(name).data_ptr() for name in ("labels", "previous"))
    soft = _Soft(
        seen.data_ptr(), fold.inverse_temperature, *state, norms.data_ptr(), partial.data_ptr(), k
    )
    given, shared = points_argument(points), warps * of_a_warp + centers
    constants = (
        *macros(rows, points.weights), ("D", wide), ("CHUNK", chunk), ("WARPS", warps),
    )  # fmt: skip
    grid = Grid(blocks, 32 * warps, shared)
    if not alone:
        Launch("soft.cu", "normalise", device, grid, Arguments(given, soft), constants)()
    grid = Grid(blocks, 32 * warps, shared, -(-k // chunk))
    Launch("soft.cu", "mix", device, grid, Arguments(given, soft, int(alone)), constants)()
    opened.labelled = False
    summary = _summary(added(partial), k, d)
    if summary is not None:
        opened.state.column("previous").copy_(opened.state.column("labels"))
    return summary


def _summary(sums: Tensor, k: int, d: int) -> Any:
    """Level, sums, masses, free energy and changed labels; None if a mass is too small."""
    energy, changed, by_center = sums[0], sums[1], sums[2:].view(k, d + 1)
    masses = by_center[:, d].contiguous()
    if not masses.min().item() >= _FAINT:
        return None
    return torch.zeros_like(masses), by_center[:, :d], masses, energy, changed.long()
