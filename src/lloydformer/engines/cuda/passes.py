"""Passes over the rows before the first iteration: what is known of the columns, and moments."""

import ctypes

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.extent import SAMPLE, SAMPLE_GROUPS, Survey
from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
)
from lloydformer.engines.cuda.points import Points, is_vector

_BLOCKS = 4
"""Blocks of a multiprocessor."""
WIDEST = 2048
"""Columns up to which one block holds a number for each in shared memory."""


def survey(rows: Tensor) -> Survey:
    """What one pass over all rows finds of the columns. Precondition: rows are contiguous."""
    (n, d), device = rows.shape, rows.device
    wide = 4 if is_vector(rows) else 1
    blocks = _wide_enough(d, device)
    stride = min(blocks * 256 * wide, n * d) // d * d
    step = max(1, n // SAMPLE)
    found = torch.empty(4 * stride + (5 + SAMPLE_GROUPS) * d, dtype=torch.float64, device=device)
    columns, length = found[4 * stride :], ctypes.c_int64(stride)
    Launch(
        "prepare.cu", "survey", device, Grid(blocks, 256),
        Arguments(rows, ctypes.c_int64(n * d), d, length, found), macros(rows),
    )()  # fmt: skip
    Launch(
        "prepare.cu", "survey_columns", device, Grid(d, 1024),
        Arguments(rows, found, length, n, d, step, columns), macros(rows),
    )()  # fmt: skip
    known = columns.cpu().numpy().reshape(5 + SAMPLE_GROUPS, d)
    ends = known[:2].astype(np.float64 if rows.dtype == torch.float64 else np.float32)
    sums, squares, first, sizes = known[2], known[3].sum(), known[4], known[5:]
    return Survey(ends, first, sums, squares, n, sizes, min(SAMPLE, -(-n // step)))


def _wide_enough(d: int, device: torch.device) -> int:
    """Blocks of 256 threads; at least one thread for each column."""
    return max(_BLOCKS * n_processors(device), -(-d // 256))


def moments(points: Points) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The summary of `plans.assign.Moments`, on the CPU."""
    d, device = points.n_features, points.rows.device
    blocks = _wide_enough(d, device)
    partial = torch.zeros(blocks, 4, dtype=torch.float64, device=device)
    columns = torch.zeros(d, dtype=torch.int64, device=device)
    Launch(
        "prepare.cu", "moments", device, Grid(blocks, 256, 8 * d),
        Arguments(points_argument(points), partial, columns), macros(points.rows, points.weights),
    )()  # fmt: skip
    weighted, count, plain, _ = partial.sum(dim=0).cpu()
    return weighted, count, plain, columns.cpu().double() / points.sum_unit
