"""Numbers that blocks of threads have added up, each for itself, added up in a fixed order."""

import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import SHARED, Arguments, Grid, Launch

MOST_FEATURES = 256
"""Columns up to which kernels add up rows in float64."""


def partial_rows(device: torch.device, blocks: int, numbers: int) -> Tensor:
    """A row of numbers for each block; not initialised."""
    return torch.empty(blocks, numbers, dtype=torch.float64, device=device)


def adding(partial: Tensor) -> tuple[Launch, Tensor]:
    """A kernel that adds the rows (blocks, numbers), always in the same order; where it writes."""
    blocks, numbers = partial.shape
    sums = torch.empty(numbers, dtype=torch.float64, device=partial.device)
    launch = Launch(
        "sums.cu", "add_rows", partial.device, Grid(-(-numbers // 64), 64),
        Arguments(partial, blocks, numbers, sums),
    )  # fmt: skip
    return launch, sums


def added(partial: Tensor) -> Tensor:
    """The sum of the rows (blocks, numbers) in float64."""
    launch, sums = adding(partial)
    launch()
    return sums


def columns(d: int) -> int:
    """Columns that a kernel is compiled for: a multiple of 32."""
    return next(width for width in (32, 64, 128, 256) if d <= width)


def warps_that_fit(bytes_of_a_warp: int, others: int = 0) -> int | None:
    """Warps of a block, at most 8, whose shared memory fits; None if one does not.

    Two blocks of a multiprocessor fit if it can be had. 1 KiB is left for what kernels declare
    themselves.
    """
    for limit in (SHARED // 2 - 1024, SHARED - 1024):
        for warps in (8, 4, 2, 1):
            if warps * bytes_of_a_warp + others <= limit:
                return warps
    return None
