"""Rows that are drawn by Gumbel noise on a GPU: the numbers of numerics/noise.py."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.points import Points
from lloydformer.numerics.noise import HEADS

_WORD = 0xFFFFFFFF


class NoiseArgument(ctypes.Structure):
    """`struct Noise` of kernels/draws.cu."""

    _fields_ = [
        ("key", ctypes.c_uint32 * 2), ("site", ctypes.c_uint32), ("draws", ctypes.c_int),
        ("start", ctypes.c_int64),
    ]  # fmt: skip


def noise_argument(seed: int, layer: int, head: str, n_draws: int, start: int) -> NoiseArgument:
    """The noise of some draws; `start` is the number of the first row."""
    key = (ctypes.c_uint32 * 2)(seed & _WORD, seed >> 32 & _WORD)
    return NoiseArgument(key, (layer << 8 | HEADS.index(head)) & _WORD, n_draws, start)


def drawn_rows(points: Points, kernel: str, size: int, *given: Any) -> tuple[Tensor, Tensor]:
    """The largest numbers (size,) that a kernel finds, and the lowest rows that have them.

    The number is -inf and the row 0 where no point has a number.
    """
    device, (width, lanes) = points.rows.device, row_shape(points.n_features)
    best = torch.zeros(size, dtype=torch.int64, device=device)
    rows = torch.full((size,), torch.iinfo(torch.int64).max, dtype=torch.int64, device=device)
    constants = (*macros(points.rows, points.weights), ("ROW", width), ("LANES", lanes))
    for step in range(2):
        arguments = Arguments(points_argument(points), *given, best, rows, step)
        grid = Grid(8 * n_processors(device), 256)
        Launch("draws.cu", kernel, device, grid, arguments, constants)()
    return _numbers(best), torch.where(best == 0, 0, rows)


def _numbers(ordered: Tensor) -> Tensor:
    """The float64 numbers that `ordered` of kernels/draws.cu stands for; -inf for 0."""
    negative = ordered >= 0  # the highest bit is not set
    bits = torch.where(negative, ~ordered, ordered ^ torch.iinfo(torch.int64).min)
    return torch.where(ordered == 0, -torch.inf, bits.view(torch.float64))
