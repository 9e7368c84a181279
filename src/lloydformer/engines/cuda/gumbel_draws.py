"""Draws by Gumbel noise on a GPU: the points that split clusters, and the paper's medoids.

The noise is that of numerics/noise.py, so that every engine draws the same rows.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.group_sums import sum_groups
from lloydformer.engines.cuda.launch import prepare_row_kernel
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import DevicePoints, list_fields
from lloydformer.engines.cuda.two_nearest import find_two_nearest
from lloydformer.numerics.noise import HEADS
from lloydformer.plans.medoids import MedoidDraw
from lloydformer.plans.relocating import ClusterErrors, Halves, PointsByDistance
from lloydformer.plans.session import weighted_sum

_WORD = 0xFFFFFFFF
# Bytes of shared memory for the numbers of points and the sums of all groups of one draw: near the
# 227 KiB of a block, less what kernels declare themselves; chosen by hand.
_MOST_SHARED = 200 * 1024
# Blocks of 256 threads per multiprocessor: all that it has room for.
_BLOCKS = 8


class NoiseArgument(ctypes.Structure):
    """`struct Noise` of kernels/gumbel_draws.cu."""

    _fields_ = list_fields("uint key_low key_high site", "int draws", "long start")


def make_noise(seed: int, layer: int, head: str, n_draws: int, start: int) -> NoiseArgument:
    """Return the noise of some draws; `start` is the number of the first row."""
    site = (layer << 8 | HEADS.index(head)) & _WORD
    return NoiseArgument(seed & _WORD, seed >> 32 & _WORD, site, n_draws, start)


def find_largest(
    points: DevicePoints, kernel: str, size: int, *arguments: Any
) -> tuple[Tensor, Tensor]:
    """Return the largest numbers (size,) that a kernel finds, and the lowest rows that have them.

    The number is -inf and the row 0 where no point has a number. Two passes: the first finds the
    numbers by atomic maxima, the second the rows by atomic minima. So ties go to the lowest row,
    whatever the order of the threads.
    """
    device, lowest = points.rows.device, torch.iinfo(torch.int64).min
    best = torch.zeros(size, dtype=torch.int64, device=device)
    rows = torch.full((size,), torch.iinfo(torch.int64).max, dtype=torch.int64, device=device)
    for number in range(2):
        given = *arguments, best, rows, number
        prepare_row_kernel(points, "gumbel_draws.cu", kernel, _BLOCKS, *given)()
    # Undo `to_ordered` of gumbel_draws.cu, which maps doubles to integers of the same order.
    negative = best >= 0  # the highest bit is not set
    bits = torch.where(negative, ~best, best ^ lowest)
    numbers = torch.where(best == 0, -torch.inf, bits.view(torch.float64))
    return numbers, torch.where(best == 0, 0, rows)


def fold_cluster_errors(arrays: CudaPointArrays, fold: ClusterErrors) -> Any:
    """Label and measure the points; return sums, mass and error of each cluster."""
    kernels = arrays.assign_labels(fold.centers)
    if kernels is None:
        return None
    labels, distances = arrays.state.column("labels"), arrays.state.column("distances")
    kernels.measure(distances)
    found = sum_groups(arrays.points, labels, len(fold.centers), distances)
    return found.sums, found.masses, found.extras


def fold_points_by_distance(arrays: CudaPointArrays, fold: PointsByDistance) -> Any:
    """Return for each chosen cluster and draw the largest score, its row and its point."""
    draws, state, start = fold.draws, arrays.state, arrays.blocks.first_row
    noise = make_noise(draws.seed, draws.layer, fold.head, draws.n_draws, start)
    given = state.column("labels"), state.column("distances"), fold.place.int().contiguous(), noise
    best, rows = find_largest(arrays.points, "draw_points", fold.count * draws.n_draws, *given)
    shape = (fold.count, draws.n_draws)
    taken = arrays.blocks.take(rows).double()
    return best.view(shape), (rows + start).view(shape), taken.view(*shape, -1)


def fold_halves(arrays: CudaPointArrays, fold: Halves) -> Any:
    """Return sums and masses of a cluster's points that are nearer to a drawn point."""
    (count, draws, d), points, state = fold.points.shape, arrays.points, arrays.state
    if 8 * count * max(draws, d + 2) > _MOST_SHARED:
        return None
    groups = torch.empty(draws, points.n_rows, dtype=torch.int32, device=points.rows.device)
    numbers = torch.zeros(count, draws, 2, dtype=torch.int32, device=points.rows.device)
    places, candidates = fold.place.int().contiguous(), fold.points.contiguous()
    read = state.column("labels"), state.column("distances"), places, candidates, count, draws
    kernel, shared = ("gumbel_draws.cu", "halve", _BLOCKS), 8 * count * draws
    prepare_row_kernel(points, *kernel, *read, groups, numbers, shared=shared)()
    found = sum_groups(points, groups, count * draws)
    near = found.sums.view(draws, count, d).transpose(0, 1)
    masses, whole = found.masses.view(draws, count).T, numbers.double()
    return near, masses, whole[..., 0], whole[..., 1]


def fold_medoid_draw(arrays: CudaPointArrays, fold: MedoidDraw) -> Any:
    """Return for each center the row with the largest perturbed score; objective and changes."""
    points, state, k = arrays.points, arrays.state, len(fold.centers)
    labels, previous = state.column("labels"), state.column("previous")
    near, _ = find_two_nearest(points, fold.centers, labels)
    arrays.labels_current = False
    state.column("distances").copy_(near)
    start, apart = arrays.blocks.first_row, fold.separation
    noise = make_noise(fold.seed, fold.iteration, "decoder_cross", k, start)
    separation = -1.0 if apart is None else float(apart)
    given = labels, fold.centers.contiguous(), k, separation, noise
    best, rows = find_largest(points, "draw_medoids", 2 * k, *given)
    # Own points of each center, then those of other clusters.
    best, rows = best.view(2, k), rows.view(2, k)
    owned = (best[0] > -torch.inf) & (apart is None)
    kept = owned | (best[0] >= best[1])
    best, rows = torch.where(kept, best[0], best[1]), torch.where(kept, rows[0], rows[1])
    changed = labels != previous
    if points.weights is not None:
        changed &= points.weights > 0
    previous.copy_(labels)
    taken = arrays.blocks.take(rows).double()
    return owned, best, rows + start, taken, weighted_sum(near, points.weights), changed.sum()
