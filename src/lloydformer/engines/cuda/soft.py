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
FAINT = 1e-200
"""Below this mass a cluster needs the running maximum of the plain fold."""


class _Soft(ctypes.Structure):
    """`struct Soft` of kernels/soft.cu."""

    _fields_ = [
        ("centers", ctypes.c_void_p), ("gamma", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("labels", "previous", "norms", "partial")),
        ("k", ctypes.c_int),
    ]  # fmt: skip


class Mixing:
    """The kernels of one pass over some points, from centers in the precision of the rows.

    Attributes
    ----------
    partial : Tensor of shape (blocks, 2 + k (d + 1))
        What they write.
    launches : list of Launch
        The kernels.
    """

    def __init__(
        self, opened: PointsOnGpu, seen: Tensor, gamma: float, chunk: int, warps: int
    ) -> None:
        points, (k, d) = opened.points, seen.shape
        rows, wide = points.rows, columns(d)
        blocks, alone = _BLOCKS * n_processors(rows.device), k <= chunk
        self.partial = partial_rows(rows.device, blocks, 2 + k * (d + 1))
        norms = rows.new_empty(0 if alone else 2 * len(rows), dtype=torch.float64)
        self._kept = seen, norms
        state = (opened.state.column(name).data_ptr() for name in ("labels", "previous"))
        argument = _Soft(
            seen.data_ptr(), gamma, *state, norms.data_ptr(), self.partial.data_ptr(), k
        )
        given = points_argument(points)
        self._constants = (
            *macros(rows, points.weights), ("D", wide), ("CHUNK", chunk), ("WARPS", warps),
        )  # fmt: skip
        shared = _shared(chunk, wide, rows.dtype.itemsize)
        grid = (blocks, 32 * warps, shared[0] * warps + shared[1])
        self.launches = [] if alone else [self._launch("normalise", Grid(*grid), given, argument)]
        mixed = Grid(*grid, -(-k // chunk))
        self.launches.append(self._launch("mix", mixed, given, argument, int(alone)))

    def _launch(self, name: str, grid: Grid, *arguments: Any) -> Launch:
        """A kernel of the same file."""
        device = self.partial.device
        return Launch("soft.cu", name, device, grid, Arguments(*arguments), self._constants)


def _shared(chunk: int, wide: int, itemsize: int) -> tuple[int, int]:
    """Bytes of shared memory of a warp, and of a block beside."""
    return 32 * (8 * chunk + (wide + 1) * itemsize), 8 * wide * chunk


def mixing(opened: PointsOnGpu, seen: Tensor, gamma: float) -> Mixing | None:
    """Kernels for these centers; None if there are none for such points."""
    k, d = seen.shape
    if opened.kernels != CUDA_CPP or opened.too_many_rows or d > MOST_FEATURES:
        return None
    chunk = min(k, _CENTERS[columns(d)])
    warps = warps_that_fit(*_shared(chunk, columns(d), seen.dtype.itemsize))
    return None if warps is None else Mixing(opened, seen, gamma, chunk, warps)


def shares(opened: PointsOnGpu, fold: Shares) -> Any:
    """The summary of the fold; None if there is no kernel for it."""
    known = mixing(opened, fold.centers.contiguous(), fold.inverse_temperature)
    if known is None:
        return None
    for launch in known.launches:
        launch()
    opened.labelled = False
    summary = _summary(added(known.partial), *fold.centers.shape)
    if summary is not None:
        opened.state.column("previous").copy_(opened.state.column("labels"))
    return summary


def _summary(sums: Tensor, k: int, d: int) -> Any:
    """Level, sums, masses, free energy and changed labels; None if a mass is too small."""
    energy, changed, by_center = sums[0], sums[1], sums[2:].view(k, d + 1)
    masses = by_center[:, d].contiguous()
    if not masses.min().item() >= FAINT:
        return None
    return torch.zeros_like(masses), by_center[:, :d], masses, energy, changed.long()
