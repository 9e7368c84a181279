"""Sums over groups of points in float64, always added in the same order.

Fixed point would be faster, but its grid must be chosen before: here weights and extra numbers
(distances, shares) have any size. Each block adds the points of its own rows in their order and
writes a row of partial sums; `reduce_blocks` adds these rows in theirs.
"""

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.engines.cuda.launch import SHARED_LIMIT, Grid, Launch, count_processors
from lloydformer.engines.cuda.points import DevicePoints, list_fields

# Bytes of shared memory of a block, so that three blocks of a multiprocessor fit: 3 x 73 KiB
# with what is reserved for each, of 228.
_SHARED_OF_THREE = 72 * 1024
# Numbers that all blocks write together, at most: 64 MiB, chosen by hand.
_MOST_PARTIAL = 1 << 23
# Left of the shared memory of a block for what kernels declare themselves.
_STATIC_SHARED = 1024
# Bytes of a block, so that two fit. Two blocks per multiprocessor are preferred to one with more
# warps: one computes while the other waits for its block sum.
SHARED_OF_TWO = SHARED_LIMIT // 2 - _STATIC_SHARED


class SharedMemoryError(RuntimeError):
    """The sums of the clusters do not fit in the shared memory of a block."""


class GroupsArgument(ctypes.Structure):
    """`struct Groups` of kernels/group_sums.cu."""

    _fields_ = list_fields("pointer of_row extra partial", "long stride", "int total chunk columns")


@dataclass(frozen=True)
class GroupSums:
    """For each group the sums of w x (g, d), of w (g,) and of w times an extra number (g,)."""

    sums: Tensor
    masses: Tensor
    extras: Tensor


def sum_groups(
    points: DevicePoints,
    groups: Tensor,
    n_groups: int,
    extra: Tensor | None = None,
    *,
    with_rows: bool = True,
) -> GroupSums:
    """Add up the points of each group.

    Parameters
    ----------
    points : DevicePoints
        The points.
    groups : Tensor of shape (n,) or (m, n)
        The group of each row, int32, or -1. With m lines, row i of line j is in one of the groups
        j n_groups / m to (j + 1) n_groups / m or in none.
    n_groups : int
        Number of groups.
    extra : Tensor of shape (n,) or None
        A number of each row, in the precision of the rows.
    with_rows : bool
        Otherwise only masses and extra numbers are added, and there are no sums of points.
    """
    device, wide = points.rows.device, points.n_features if with_rows else 0
    lines, processors = (1 if groups.ndim == 1 else len(groups)), count_processors(device)
    # A block keeps the sums of a chunk of groups in shared memory: all groups, in three blocks per
    # multiprocessor, if they fit; else as many as one block can hold, in several layers of blocks.
    of_line, of_group = n_groups // lines, 8 * (wide + 2)
    chunk, blocks = of_line, 3 * processors
    if of_line > _SHARED_OF_THREE // of_group:
        chunk = min(of_line, (SHARED_LIMIT - _STATIC_SHARED) // of_group)
        blocks = processors
    layers = lines * -(-n_groups // (lines * chunk))
    blocks = max(1, min(blocks, _MOST_PARTIAL // (n_groups * (wide + 2))))
    partial = allocate_partial(device, blocks, n_groups * (wide + 2))
    pointers = groups.data_ptr(), None if extra is None else extra.data_ptr(), partial.data_ptr()
    stride = groups.stride(0) if lines > 1 else 0
    given = points.argument, GroupsArgument(*pointers, stride, n_groups, chunk, wide)
    grid = Grid(blocks, 256, chunk * of_group, layers)
    macros = (*points.macros, ("D", pad_columns(max(1, wide))))
    Launch("group_sums.cu", "group_sums", device, grid, *given, macros=macros)()
    found = reduce_blocks(partial).view(n_groups, wide + 2)
    return GroupSums(found[:, :wide], found[:, wide], found[:, wide + 1])


def allocate_partial(device: torch.device, blocks: int, numbers: int) -> Tensor:
    """Return a row of numbers for each block, not initialised."""
    return torch.empty(blocks, numbers, dtype=torch.float64, device=device)


def prepare_reduction(partial: Tensor) -> tuple[Launch, Tensor]:
    """Return a kernel that adds the rows of `partial` in their order, and where it writes."""
    blocks, numbers = partial.shape
    sums = torch.empty(numbers, dtype=torch.float64, device=partial.device)
    given, grid = (partial, blocks, numbers, sums), Grid(-(-numbers // 64), 64)
    return Launch("reduce.cu", "add_rows", partial.device, grid, *given), sums


def reduce_blocks(partial: Tensor) -> Tensor:
    """Return the sum of the rows (blocks, numbers) in float64."""
    launch, sums = prepare_reduction(partial)
    launch()
    return sums


def pad_columns(d: int) -> int:
    """Return the columns that a kernel is compiled for: a multiple of the 32 lanes of a warp."""
    return next(width for width in (32, 64, 128, 256) if d <= width)


def count_warps(bytes_of_warp: int, bytes_of_block: int = 0) -> int:
    """Return the warps of a block, at most 8, whose shared memory fits.

    Raises `SharedMemoryError` if one does not fit: then the engine runs the fold with torch.
    """
    for limit in (SHARED_OF_TWO, SHARED_LIMIT - _STATIC_SHARED):
        for warps in (8, 4, 2, 1):
            if warps * bytes_of_warp + bytes_of_block <= limit:
                return warps
    raise SharedMemoryError
