"""The two nearest centers of each point, and the folds that need them.

Relocation removes the center whose points lose least by moving to their second nearest one
(plans/relocating.py); the learned layer weighs centers by both distances (plans/symmetric.py).
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.group_sums import sum_groups
from lloydformer.engines.cuda.launch import prepare_row_kernel
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.cuda.points import DevicePoints
from lloydformer.plans.relocating import SecondNearestSums, TwoNearest
from lloydformer.plans.session import weighted_sum
from lloydformer.plans.symmetric import NearestCosts


def find_two_nearest(
    points: DevicePoints, centers: Tensor, labels: Tensor, seconds: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return squared distances (n,) to the nearest and the second nearest center.

    The centers themselves are written to `labels` and `seconds`, (n,) int32; the first of equal
    ones. With one center both are the same.
    """
    near, far = torch.empty(2, points.n_rows, dtype=points.rows.dtype, device=points.rows.device)
    centers, others = centers.contiguous(), ctypes.c_void_p() if seconds is None else seconds
    given = centers, len(centers), labels, others, near, far
    prepare_row_kernel(points, "two_nearest.cu", "two_nearest", 16, *given)()
    return near, far


def fold_two_nearest(arrays: CudaPointArrays, fold: TwoNearest) -> Any:
    """Find the two nearest centers; return sums, mass and utility of each cluster."""
    points, state = arrays.points, arrays.state
    labels = state.column("labels")
    near, far = find_two_nearest(points, fold.centers, labels, state.column("second"))
    arrays.labels_current = False
    found = sum_groups(points, labels, len(fold.centers), far - near)
    return found.sums, found.masses, found.extras


def fold_second_nearest_sums(arrays: CudaPointArrays, fold: SecondNearestSums) -> Any:
    """Return sums and masses of some clusters' points, by second nearest center."""
    k, q, state = fold.n_clusters, len(fold.candidates), arrays.state
    # A group for each pair of candidate and second nearest center; -1 for other clusters' points.
    first = torch.full((k,), -1, dtype=torch.int32, device=fold.candidates.device)
    first[fold.candidates] = k * torch.arange(q, dtype=torch.int32, device=first.device)
    own = first[state.column("labels")]
    pairs = torch.where(own < 0, own, own + state.column("second"))
    found = sum_groups(arrays.points, pairs, q * k)
    return found.sums.view(q, k, -1), found.masses.view(q, k)


def fold_nearest_costs(arrays: CudaPointArrays, fold: NearestCosts) -> Any:
    """Return sums of the distances to both centers, and masses and costs of the clusters."""
    points = arrays.points
    labels = torch.empty(points.n_rows, dtype=torch.int32, device=points.rows.device)
    near, far = find_two_nearest(points, fold.centers, labels)
    found = sum_groups(points, labels, len(fold.centers), near, with_rows=False)
    first, second = weighted_sum(near, points.weights), weighted_sum(far, points.weights)
    return first, second, found.masses, found.extras
