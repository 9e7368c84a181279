"""Passes over the rows before the first iteration: what is known of the columns, and moments."""

import ctypes

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.extent import Survey
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
SAMPLE, _GROUPS = 256, 8
"""Rows that tell the size of most coordinates, and groups of them."""
WIDEST = 2048
"""Columns up to which one block holds a number for each in shared memory."""


def survey(rows: Tensor) -> Survey:
    """What one pass over all rows finds of the columns. Precondition: rows are contiguous."""
    (n, d), device = rows.shape, rows.device
    wide = 4 if is_vector(rows) else 1
    blocks = _wide_enough(d, device)
    stride = min(blocks * 256 * wide, n * d) // d * d
    step = max(1, n // SAMPLE)
    found = torch.empty(4 * stride + (5 + _GROUPS) * d, dtype=torch.float64, device=device)
    columns, length = found[4 * stride :], ctypes.c_int64(stride)
    Launch(
        "prepare.cu", "survey", device, Grid(blocks, 256),
        Arguments(rows, ctypes.c_int64(n * d), d, length, found), macros(rows),
    )()  # fmt: skip
    Launch(
        "prepare.cu", "survey_columns", device, Grid(d, 1024),
        Arguments(rows, found, length, n, d, step, columns), macros(rows),
    )()  # fmt: skip
    low, high, sums, squares, first, *groups = columns.cpu().numpy().reshape(5 + _GROUPS, d)
    kind = np.float64 if rows.dtype == torch.float64 else np.float32
    typical = typical_size(np.array(groups).sum(axis=1) / d, min(SAMPLE, -(-n // step)))
    return Survey(np.array([low, high], kind), first, sums, squares.sum(), n, typical)


def typical_size(sums: np.ndarray, count: int) -> float:
    """The size of most coordinates, which a few outliers do not change.

    Parameters
    ----------
    sums : ndarray of shape (8,)
        For groups of 32 rows of a sample, the sum of the mean size of their coordinates.
    count : int
        Rows of the sample, at most 256.
    """
    each = SAMPLE // _GROUPS
    counts = np.clip(count - each * np.arange(_GROUPS), 0, each)
    means = np.sort(sums[counts > 0] / counts[counts > 0])
    return float(means[len(means) // 2])


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
