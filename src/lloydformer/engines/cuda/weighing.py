"""Trimmed and robust k-means on a GPU: their folds by kernels in CUDA C++."""

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
from lloydformer.numerics.shares import LOWEST
from lloydformer.plans.robust import Above, Best, Exponential, Sparse, Weighted
from lloydformer.plans.selection import Histogram
from lloydformer.plans.trimmed import Within

_BLOCKS = 2
"""Blocks of a multiprocessor in kernels that add up."""
_WITHIN, _SPARSE, _EXPONENTIAL = range(3)
"""Ways to weigh points, as kernels/weigh.cu numbers them."""


class _Known(ctypes.Structure):
    """`struct Known` of kernels/weigh.cu."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("labels", "previous", "distances", "trimmed")]


class _Clusters(ctypes.Structure):
    """`struct Clusters` of kernels/weigh.cu."""

    _fields_ = [
        ("limit", ctypes.c_void_p), ("radius", ctypes.c_void_p), ("gamma", ctypes.c_double),
        ("k", ctypes.c_int),
    ]  # fmt: skip


class _Kernels:
    """Kernels of one file for some points, and what they are given."""

    def __init__(self, opened: PointsOnGpu) -> None:
        self.opened, points = opened, opened.points
        self.device, self.d = points.rows.device, points.n_features
        self.given = points_argument(points)
        self.macros = macros(points.rows, points.weights)
        self.blocks = _BLOCKS * n_processors(self.device)

    def known(self, *names: str) -> _Known:
        return _Known(**{name: self.opened.state.column(name).data_ptr() for name in names})

    def launch(self, name: str, grid: Grid, *arguments: Any, warps: int = 8) -> None:
        constants = (
            *self.macros, ("D", columns(self.d)), ("WARPS", warps), ("LOWEST", str(LOWEST)),
        )  # fmt: skip
        given = Arguments(self.given, *arguments)
        Launch("weigh.cu", name, self.device, grid, given, constants)()

    def counted(self, gamma: float, limit: Tensor, *, equal: bool) -> tuple[Tensor, Tensor] | None:
        """Of each cluster, mass and weighted score of points above the limit, or equal to it."""
        k = len(limit)
        warps = warps_that_fit(16 * k)
        if warps is None:
            return None
        partial, limit = partial_rows(self.device, self.blocks, 2 * k), limit.contiguous()
        self.launch(
            "count_scores", Grid(self.blocks, 32 * warps, 16 * k * warps),
            self.known("labels", "distances"), _Clusters(limit.data_ptr(), None, gamma, k),
            int(equal), partial, warps=warps,
        )  # fmt: skip
        mass, score = added(partial).view(k, 2).T.contiguous()
        return mass, score

    def weighted(self, mode: int, gamma: float, limit: Tensor, radius: Tensor) -> Any:
        """Sums, masses, objective and changed points, with the weights of a mode."""
        k = max(len(limit), len(radius))
        of_a_warp = 8 * k * (self.d + 1)
        warps = warps_that_fit(of_a_warp)
        if warps is None:
            return None
        partial = partial_rows(self.device, self.blocks, 2 + k * (self.d + 1))
        names = ["labels", "previous", "distances", *(["trimmed"] if mode == _WITHIN else [])]
        clusters = _Clusters(limit.data_ptr(), radius.data_ptr(), gamma, k)
        self.launch(
            "weighted_sums", Grid(self.blocks, 32 * warps, of_a_warp * warps),
            self.known(*names), clusters, mode, partial, warps=warps,
        )  # fmt: skip
        sums = added(partial)
        by_cluster = sums[2:].view(k, self.d + 1)
        return by_cluster[:, : self.d], by_cluster[:, self.d], sums[0], sums[1].long()


def _kernels(opened: PointsOnGpu) -> _Kernels | None:
    fits = opened.layout.n_features <= MOST_FEATURES and not opened.too_many_rows
    return _Kernels(opened) if fits and opened.kernels == CUDA_CPP else None


def histogram(opened: PointsOnGpu, fold: Histogram) -> Any:
    """Masses by cluster and the next digit of the distance."""
    kernels = _kernels(opened)
    if kernels is None:
        return None
    counts = torch.zeros(len(fold.prefix), 256, dtype=torch.int64, device=kernels.device)
    kernels.launch(
        "histogram", Grid(4 * kernels.blocks, 256), kernels.known("labels", "distances"),
        fold.prefix.contiguous(), fold.shift, counts,
    )  # fmt: skip
    return (counts.double() / opened.points.mass_unit,)


def best(opened: PointsOnGpu, fold: Best) -> Any:
    """The best score of each cluster, and the mass that attains it."""
    kernels = _kernels(opened)
    if kernels is None:
        return None
    least = torch.full((fold.n_clusters,), torch.inf, dtype=torch.float64, device=kernels.device)
    kernels.launch(
        "best_scores", Grid(4 * kernels.blocks, 256), kernels.known("labels", "distances"),
        float(fold.inverse_temperature), least,
    )  # fmt: skip
    counted = kernels.counted(float(fold.inverse_temperature), -least, equal=True)
    return None if counted is None else (-least, counted[0])


def above(opened: PointsOnGpu, fold: Above) -> Any:
    """Mass and weighted score of each cluster's points above its threshold."""
    kernels = _kernels(opened)
    if kernels is None:
        return None
    return kernels.counted(float(fold.inverse_temperature), fold.threshold, equal=False)


def within(opened: PointsOnGpu, fold: Within) -> Any:
    """Sums over the points within their cluster's radius."""
    kernels, radius = _kernels(opened), fold.radius.contiguous()
    return None if kernels is None else kernels.weighted(_WITHIN, 0.0, radius, radius)


def weighted(opened: PointsOnGpu, fold: Weighted) -> Any:
    """Sums with the weights of robust k-means."""
    kernels, weigh = _kernels(opened), fold.weigh
    if kernels is None:
        return None
    gamma = float(weigh.inverse_temperature)
    if isinstance(weigh, Sparse):
        limit = weigh.threshold.contiguous()
        found = kernels.weighted(_SPARSE, gamma, limit, limit)
    elif isinstance(weigh, Exponential):
        limit, radius = weigh.best.contiguous(), weigh.radius.to(opened.layout.dtype).contiguous()
        found = kernels.weighted(_EXPONENTIAL, gamma, limit, radius)
    else:
        return None
    return found
