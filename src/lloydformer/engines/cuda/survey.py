"""Passes over the rows before the first iteration: ranges and sums of the columns, moments."""

import ctypes

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.column_statistics import SAMPLE, SAMPLE_GROUPS, ColumnStatistics
from lloydformer.engines.cuda.launch import Grid, Launch, count_processors
from lloydformer.engines.cuda.points import DevicePoints, can_load_vectors, list_macros

# `compute_moments` keeps a 64-bit sum for each column in the shared memory of a block: 16 KiB of
# the 48 KiB that need no permission.
MOST_COLUMNS = 2048


def survey_rows(rows: Tensor) -> ColumnStatistics:
    """Return ranges, sums and a sample of the columns. Precondition: rows are contiguous."""
    (n, d), device, macros = rows.shape, rows.device, list_macros(rows)
    blocks = _count_blocks(d, device)
    # A thread keeps to its columns: threads are as far apart as a multiple of d.
    stride = min(blocks * 256 * (4 if can_load_vectors(rows) else 1), n * d) // d * d
    step = max(1, n // SAMPLE)
    found = torch.empty(4 * stride + (5 + SAMPLE_GROUPS) * d, dtype=torch.float64, device=device)
    columns, length = found[4 * stride :], ctypes.c_int64(stride)
    read = rows, ctypes.c_int64(n * d), d, length, found
    Launch("prepare.cu", "survey", device, Grid(blocks, 256), *read, macros=macros)()
    merge = rows, found, length, n, d, step, columns
    Launch("prepare.cu", "survey_columns", device, Grid(d, 1024), *merge, macros=macros)()
    known = columns.cpu().numpy().reshape(5 + SAMPLE_GROUPS, d)
    ends = known[:2].astype(np.float64 if rows.dtype == torch.float64 else np.float32)
    sums, squares, first, sizes = known[2], known[3].sum(), known[4], known[5:]
    return ColumnStatistics(ends, first, sums, squares, n, sizes, min(SAMPLE, -(-n // step)))


def compute_moments(points: DevicePoints) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the summary of `plans.assign.Moments`, on the CPU."""
    d, device = points.n_features, points.rows.device
    blocks = _count_blocks(d, device)
    partial = torch.zeros(blocks, 4, dtype=torch.float64, device=device)
    columns = torch.zeros(d, dtype=torch.int64, device=device)
    given, grid = (points.argument, partial, columns), Grid(blocks, 256, 8 * d)
    Launch("prepare.cu", "moments", device, grid, *given, macros=points.macros)()
    weighted, count, plain, _ = partial.sum(dim=0).cpu()
    return weighted, count, plain, columns.cpu().double() / points.sum_unit


def _count_blocks(d: int, device: torch.device) -> int:
    """Return the number of blocks of 256 threads; at least one thread for each column.

    Four blocks per multiprocessor, chosen by hand: with four loads in flight per thread they keep
    the memory busy.
    """
    return max(4 * count_processors(device), -(-d // 256))
