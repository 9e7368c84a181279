"""The paper's draws of medoids on a GPU."""

from typing import Any

import torch

from lloydformer.engines.cuda.groups import has_kernels, two_nearest
from lloydformer.engines.cuda.noise import drawn_rows, noise_argument
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.plans.medoids import Draw
from lloydformer.plans.session import total


def draw(opened: PointsOnGpu, fold: Draw) -> Any:
    """For each center the row with the largest perturbed score; objective and changed labels."""
    if not has_kernels(opened):
        return None
    points, state, k = opened.points, opened.state, len(fold.centers)
    labels, previous = state.column("labels"), state.column("previous")
    near, _ = two_nearest(points, fold.centers, labels)
    opened.labelled = False
    state.column("distances").copy_(near)
    first_row, apart = opened.blocks.first_row, fold.separation
    noise = noise_argument(fold.seed, fold.iteration, "decoder_cross", k, first_row)
    best, rows = drawn_rows(
        points, "draw_medoids", 2 * k, labels, fold.centers.contiguous(), k,
        -1.0 if apart is None else float(apart), noise,
    )  # fmt: skip
    best, rows = best.view(2, k), rows.view(2, k)
    owned = (best[0] > -torch.inf) & (apart is None)
    kept = owned | (best[0] >= best[1])
    best, rows = torch.where(kept, best[0], best[1]), torch.where(kept, rows[0], rows[1])
    changed = labels != previous
    if points.weights is not None:
        changed &= points.weights > 0
    previous.copy_(labels)
    taken = opened.blocks.take(rows).double()
    return owned, best, rows + first_row, taken, total(near, points.weights), changed.sum()
