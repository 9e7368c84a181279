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
from lloydformer.plans.robust import (
    Above,
    Best,
    Exponential,
    Sparse,
    Weighted,
)
from lloydformer.plans.selection import Histogram
from lloydformer.plans.trimmed import Within

_BLOCKS = 2
"""Blocks of a multiprocessor in kernels that add up."""
_ALL_WARPS = 8
_WITHIN, SPARSE, _EXPONENTIAL = range(3)
"""Ways to weigh points, as kernels/weigh.cu numbers them."""


class _Known(ctypes.Structure):
    """`struct Known` of kernels/weigh.cu."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("labels", "previous", "distances", "trimmed")]


class _Clusters(ctypes.Structure):
    """`struct Clusters` of kernels/weigh.cu."""

    _fields_ = [
        ("limit", ctypes.c_void_p), ("radius", ctypes.c_void_p), ("gamma", ctypes.c_double),
        ("status", ctypes.c_void_p), ("k", ctypes.c_int),
    ]  # fmt: skip


class WeighKernels:
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
        self.prepared(name, grid, *arguments, warps=warps)()

    def prepared(self, name: str, grid: Grid, *arguments: Any, warps: int = 8) -> Launch:
        constants = (
            *self.macros, ("D", columns(self.d)), ("WARPS", warps), ("LOWEST", str(LOWEST)),
        )  # fmt: skip
        given = Arguments(self.given, *arguments)
        return Launch("weigh.cu", name, self.device, grid, given, constants)

    def counting(
        self, gamma: float, limit: Tensor, *, equal: bool = False, status: Tensor | None = None
    ) -> tuple[Launch, Tensor] | None:
        """Of each cluster, mass and weighted score of points above the limit, or equal to -limit.

        The kernel, and the numbers (blocks, 2 k) that it writes; None if there are too many
        clusters. It does nothing if the status is not 0.
        """
        k = len(limit)
        apart = warps_that_fit(16 * k * 32) == _ALL_WARPS
        of_a_warp = 16 * k * (32 if apart else 1)
        warps = warps_that_fit(of_a_warp)
        if warps is None:
            return None
        partial = partial_rows(self.device, self.blocks, 2 * k)
        asked = None if status is None else status.data_ptr()
        launch = self.prepared(
            "count_scores", Grid(self.blocks, 32 * warps, of_a_warp * warps),
            self.known("labels", "distances"), _Clusters(limit.data_ptr(), None, gamma, asked, k),
            int(equal), int(apart), partial, warps=warps,
        )  # fmt: skip
        return launch, partial

    def counted(self, gamma: float, limit: Tensor, *, equal: bool) -> tuple[Tensor, Tensor] | None:
        """The same, added up."""
        limit = limit.contiguous()
        counting = self.counting(gamma, limit, equal=equal)
        if counting is None:
            return None
        counting[0]()
        mass, score = added(counting[1]).view(len(limit), 2).T.contiguous()
        return mass, score

    def finding_best(self, gamma: float, least: Tensor) -> Launch:
        """Lowers numbers (k,) to the least -score of each cluster."""
        grid = Grid(4 * self.blocks, 256)
        known = self.known("labels", "distances")
        return self.prepared("best_scores", grid, known, gamma, least)

    def weighing(
        self, mode: int, gamma: float, limit: Tensor, radius: Tensor
    ) -> tuple[Launch, Tensor] | None:
        """Objective, changed points, sums and masses, with the weights of a mode.

        The kernel, and the numbers (blocks, 2 + k (d + 1)) that it writes; None if there are too
        many clusters.
        """
        k = max(len(limit), len(radius))
        of_a_warp = 8 * k * (self.d + 1)
        warps = warps_that_fit(of_a_warp)
        if warps is None:
            return None
        partial = partial_rows(self.device, self.blocks, 2 + k * (self.d + 1))
        names = ["labels", "previous", "distances", *(["trimmed"] if mode == _WITHIN else [])]
        clusters = _Clusters(limit.data_ptr(), radius.data_ptr(), gamma, None, k)
        launch = self.prepared(
            "weighted_sums", Grid(self.blocks, 32 * warps, of_a_warp * warps),
            self.known(*names), clusters, mode, partial, warps=warps,
        )  # fmt: skip
        return launch, partial

    def weighted(self, mode: int, gamma: float, limit: Tensor, radius: Tensor) -> Any:
        """The same, added up."""
        weighing = self.weighing(mode, gamma, limit, radius)
        if weighing is None:
            return None
        weighing[0]()
        sums = added(weighing[1])
        by_cluster = sums[2:].view(-1, self.d + 1)
        return by_cluster[:, : self.d], by_cluster[:, self.d], sums[0], sums[1].long()


def weigh_kernels(opened: PointsOnGpu) -> WeighKernels | None:
    fits = opened.layout.n_features <= MOST_FEATURES and not opened.too_many_rows
    return WeighKernels(opened) if fits and opened.kernels == CUDA_CPP else None


def histogram(opened: PointsOnGpu, fold: Histogram) -> Any:
    """Masses by cluster and the next digit of the distance."""
    kernels = weigh_kernels(opened)
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
    kernels, gamma = weigh_kernels(opened), float(fold.inverse_temperature)
    if kernels is None:
        return None
    least = torch.full((fold.n_clusters,), torch.inf, dtype=torch.float64, device=kernels.device)
    kernels.finding_best(gamma, least)()
    counted = kernels.counted(gamma, least, equal=True)
    return None if counted is None else (-least, counted[0])


def above(opened: PointsOnGpu, fold: Above) -> Any:
    """Mass and weighted score of each cluster's points above its threshold."""
    kernels = weigh_kernels(opened)
    if kernels is None:
        return None
    return kernels.counted(float(fold.inverse_temperature), fold.threshold, equal=False)


def within(opened: PointsOnGpu, fold: Within) -> Any:
    """Sums over the points within their cluster's radius."""
    kernels, radius = weigh_kernels(opened), fold.radius.contiguous()
    return None if kernels is None else kernels.weighted(_WITHIN, 0.0, radius, radius)


def weighted(opened: PointsOnGpu, fold: Weighted) -> Any:
    """Sums with the weights of robust k-means."""
    kernels, weigh = weigh_kernels(opened), fold.weigh
    if kernels is None:
        return None
    gamma = float(weigh.inverse_temperature)
    if isinstance(weigh, Sparse):
        limit = weigh.threshold.contiguous()
        found = kernels.weighted(SPARSE, gamma, limit, limit)
    elif isinstance(weigh, Exponential):
        limit, radius = weigh.best.contiguous(), weigh.radius.to(opened.layout.dtype).contiguous()
        found = kernels.weighted(_EXPONENTIAL, gamma, limit, radius)
    else:
        return None
    return found
