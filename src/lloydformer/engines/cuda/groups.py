"""Sums over groups of points on a GPU, and the two nearest centers of each point."""

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP
from lloydformer.engines.cuda.launches import (
    SHARED,
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.partial_sums import MOST_FEATURES, added, columns, partial_rows
from lloydformer.engines.cuda.points import Points

_ROOM = 72 * 1024
"""Bytes of shared memory of a block, so that three blocks of a multiprocessor fit."""
_PARTIAL = 1 << 23
"""Numbers that all blocks write together, at most; 64 MiB."""


class _Groups(ctypes.Structure):
    """`struct Groups` of kernels/groups.cu."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("of_row", "extra", "partial")),
        ("stride", ctypes.c_int64),
        *((name, ctypes.c_int) for name in ("total", "chunk", "columns")),
    ]  # fmt: skip


@dataclass(frozen=True)
class GroupSums:
    """For each group the sums of w x (g, d), of w (g,) and of w times an extra number (g,)."""

    sums: Tensor
    masses: Tensor
    extras: Tensor


def has_kernels(opened: PointsOnGpu) -> bool:
    """True if there are at most 256 features and 2^30 rows, and CUDA C++ runs."""
    few = opened.layout.n_features <= MOST_FEATURES and not opened.too_many_rows
    return few and opened.kernels == CUDA_CPP


def group_sums(
    points: Points,
    groups: Tensor,
    n_groups: int,
    extra: Tensor | None = None,
    *,
    rows_too: bool = True,
) -> GroupSums:
    """Add up the points of each group, in float64, always in the same order.

    Parameters
    ----------
    points : Points
        The points.
    groups : Tensor of shape (n,) or (m, n)
        The group of each row, int32, or -1. With m lines, row i of line j is in one of the groups
        j n_groups / m to (j + 1) n_groups / m or in none.
    n_groups : int
        Number of groups.
    extra : Tensor of shape (n,) or None
        A number of each row, in the precision of the rows.
    rows_too : bool
        Otherwise only masses and extra numbers are added, and there are no sums of points.
    """
    device, wide = points.rows.device, points.n_features if rows_too else 0
    lines, processors = (1 if groups.ndim == 1 else len(groups)), n_processors(device)
    chunk, blocks = _cut(n_groups // lines, 8 * (wide + 2), processors)
    layers = lines * -(-n_groups // (lines * chunk))
    blocks = max(1, min(blocks, _PARTIAL // (n_groups * (wide + 2))))
    stride = groups.stride(0) if lines > 1 else 0
    partial = partial_rows(device, blocks, n_groups * (wide + 2))
    given = _Groups(
        groups.data_ptr(), None if extra is None else extra.data_ptr(), partial.data_ptr(),
        stride, n_groups, chunk, wide,
    )  # fmt: skip
    constants = (*macros(points.rows, points.weights), ("D", columns(max(1, wide))))
    Launch(
        "groups.cu", "group_sums", device, Grid(blocks, 256, 8 * chunk * (wide + 2), layers),
        Arguments(points_argument(points), given), constants,
    )()  # fmt: skip
    found = added(partial).view(n_groups, wide + 2)
    return GroupSums(found[:, :wide], found[:, wide], found[:, wide + 1])


def _cut(n_groups: int, bytes_of_a_group: int, processors: int) -> tuple[int, int]:
    """Groups of a block, and blocks."""
    few = _ROOM // bytes_of_a_group
    if n_groups <= few:
        return n_groups, 3 * processors
    return min(n_groups, (SHARED - 1024) // bytes_of_a_group), processors


def two_nearest(
    points: Points, centers: Tensor, labels: Tensor, seconds: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Squared distances (n,) to the nearest and the second nearest center.

    Which centers these are is written to `labels` and `seconds`, (n,) int32; the first of equal
    ones. With one center both are the same.
    """
    width, lanes = row_shape(points.n_features)
    near, far = torch.empty(2, points.n_rows, dtype=points.rows.dtype, device=points.rows.device)
    seen, others = centers.contiguous(), ctypes.c_void_p() if seconds is None else seconds
    constants = (*macros(points.rows, points.weights), ("ROW", width), ("LANES", lanes))
    Launch(
        "groups.cu", "two_nearest", points.rows.device,
        Grid(16 * n_processors(points.rows.device), 256),
        Arguments(points_argument(points), seen, len(seen), labels, others, near, far), constants,
    )()  # fmt: skip
    return near, far
