"""The learned layer on a GPU: distances to the two nearest centers."""

from typing import Any

import torch

from lloydformer.engines.cuda.groups import group_sums, has_kernels, two_nearest
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.plans.session import total
from lloydformer.plans.symmetric import NearestCosts


def nearest_costs(opened: PointsOnGpu, fold: NearestCosts) -> Any:
    """Sums of the distances to the nearest and second nearest center; masses and costs."""
    if not has_kernels(opened):
        return None
    points = opened.points
    labels = torch.empty(points.n_rows, dtype=torch.int32, device=points.rows.device)
    near, far = two_nearest(points, fold.centers, labels)
    found = group_sums(points, labels, len(fold.centers), near, rows_too=False)
    first, second = total(near, points.weights), total(far, points.weights)
    return first, second, found.masses, found.extras
