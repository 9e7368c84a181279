"""Initial centers on a GPU: greedy k-means++ for several starts at once, and k-means||."""

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.group_sums import sum_groups
from lloydformer.engines.cuda.launch import (
    Grid,
    Launch,
    choose_row_tile,
    count_processors,
    prepare_row_kernel,
)
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import DevicePoints, list_fields
from lloydformer.plans.seeding import Oversampling, PlusPlusSeeds
from lloydformer.plans.session import weighted_sum

# Rows whose mass is summed by one block: CHUNK of kernels/seeds.cu.
_CHUNK = 1024
# scikit-learn draws 2 + int(log k) candidates per seed: at most 16 up to 3 million centers.
_MOST_TRIALS = 16
# Starts that share a read of the points, their candidates, and the shared memory of these. Chosen
# by hand: a thread sums 4 to 16 candidates in float64 registers, and two blocks with 96 KiB
# fit on a multiprocessor.
_MOST_STARTS, _MOST_CANDIDATES, _MOST_SHARED = 16, 64, 96 * 1024


class SeedsArgument(ctypes.Structure):
    """`struct Seeds` of kernels/seeds.cu."""

    _fields_ = list_fields(
        "pointer distances rows found masses fractions candidates partial ticket", "int k chunks"
    )


def run_plus_plus_seeds(arrays: CudaPointArrays, task: PlusPlusSeeds) -> list[Tensor] | None:
    """Return for each start the rows (k,) of the seeds; fewer, if every weighted point is one.

    None if there are too many candidates for the kernels, or too little memory.
    """
    points, (n_starts, _, n_trials) = arrays.points, task.draws.shape
    if n_trials > _MOST_TRIALS:
        return None
    width, lanes = choose_row_tile(points.n_features)
    shared = n_trials * width * points.rows.dtype.itemsize
    candidates = 16 if lanes == 1 else _MOST_CANDIDATES  # a thread sums so many / lanes of them
    together = max(1, min(_MOST_STARTS, candidates // n_trials, _MOST_SHARED // shared))
    parts = [slice(i, min(i + together, n_starts)) for i in range(0, n_starts, together)]
    found: list[Tensor] = []
    try:
        for part in parts:
            found += _draw_seeds(points, task.firsts[part], task.draws[part])
    except torch.OutOfMemoryError:  # one start after the other takes less, by PyTorch
        return None
    return found


def _draw_seeds(points: DevicePoints, firsts: np.ndarray, draws: np.ndarray) -> list[Tensor]:
    """Draw the seeds of starts that share each read of the points, without a wait between seeds.

    Parameters
    ----------
    points : DevicePoints
        The points.
    firsts : ndarray of shape (s,)
        The row of the first seed of each start.
    draws : ndarray of shape (s, k - 1, trials)
        Numbers from [0, 1).
    """
    device, (starts, others, trials) = points.rows.device, draws.shape
    k, chunks, processors = others + 1, -(-points.n_rows // _CHUNK), count_processors(device)
    blocks = 4 * processors
    # One copy to the device: ticket, number of seeds of each start, their rows, random numbers.
    packed = np.zeros(1 + starts * (1 + k) + draws.size, dtype=np.int64)
    packed[1 : 1 + starts] = 1
    rows = slice(1 + starts, 1 + starts + starts * k)
    packed[rows].reshape(starts, k)[:, 0] = firsts
    packed[rows.stop :] = draws.reshape(-1).view(np.int64)
    on_device = torch.from_numpy(packed).to(device)
    distances = torch.empty(points.n_rows, starts, dtype=points.rows.dtype, device=device)
    sizes = np.cumsum([0, starts * chunks, starts * trials, blocks * starts * trials]).tolist()
    scratch = torch.empty(sizes[-1], dtype=torch.int64, device=device)
    in_packed = {"ticket": 0, "found": 1, "rows": rows.start, "fractions": rows.stop}
    in_scratch = {"masses": sizes[0], "candidates": sizes[1], "partial": sizes[2]}
    pointers = {name: on_device.data_ptr() + 8 * at for name, at in in_packed.items()}
    pointers |= {name: scratch.data_ptr() + 8 * at for name, at in in_scratch.items()}
    argument = SeedsArgument(distances=distances.data_ptr(), **pointers, k=k, chunks=chunks)
    width, lanes = choose_row_tile(points.n_features)
    tile = ("D", width), ("LANES", lanes), ("STARTS", starts), ("TRIALS", trials)
    given, macros = (points.argument, argument), (*points.macros, *tile)
    grids = {
        "update_distances": Grid(min(chunks, 16 * processors), 256),
        "draw": Grid(starts * trials, 256),
        "choose_candidates": Grid(
            blocks, 256, starts * trials * width * points.rows.dtype.itemsize
        ),
    }
    kernels = [
        Launch("seeds.cu", name, device, grid, *given, macros=macros)
        for name, grid in grids.items()
    ]
    for kernel in kernels * others:
        kernel()
    counts = on_device[1 : 1 + starts].tolist()
    found = on_device[rows].view(starts, k)
    return [seeds[:count] for count, seeds in zip(counts, found, strict=True)]


def fold_oversampling(arrays: CudaPointArrays, fold: Oversampling) -> Any:
    """Return the sum of w d^2; ratios and rows of the points drawn; the mass of each candidate."""
    points, start, count = arrays.points, arrays.blocks.first_row, len(fold.fresh)
    labels, distances = (arrays.state.column(name) for name in ("labels", "distances"))
    arrays.labels_current = False
    fresh, file = fold.fresh.contiguous(), "oversample.cu"
    if count:
        given = fresh, count, fold.known, labels, distances
        prepare_row_kernel(points, file, "update_nearest", 8, *given)()
    ratios = torch.empty(points.n_rows, dtype=torch.float64, device=labels.device)
    counters = (ctypes.c_int64(number) for number in (start, fold.seed, fold.number))
    numbers = distances, *counters, float(fold.most), ratios
    prepare_row_kernel(points, file, "draw_ratios", 8, *numbers)()
    mass = weighted_sum(distances, points.weights)
    # The ratio is most w d^2 / u without the mass, so that it can be compared again with the mass
    # of all parts when summaries are merged.
    rows = (ratios > mass).nonzero()[:, 0]
    attracted = sum_groups(points, labels, fold.known + count, with_rows=False).masses
    return mass, ratios[rows], rows + start, attracted
