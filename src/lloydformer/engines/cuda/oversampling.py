"""k-means|| on a GPU: rounds of draws."""

import ctypes
from typing import Any

import torch

from lloydformer.engines.cuda.groups import group_sums, has_kernels
from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.plans.seeding import Oversample
from lloydformer.plans.session import total


def oversample(opened: PointsOnGpu, fold: Oversample) -> Any:
    """The sum of w d^2; ratios and rows of the points drawn; the mass of each candidate."""
    if not has_kernels(opened):
        return None
    points, start = opened.points, opened.blocks.first_row
    labels, distances = (opened.state.column(name) for name in ("labels", "distances"))
    opened.labelled, count = False, len(fold.fresh)

    def launch(name: str, *arguments: Any) -> None:
        width, lanes = row_shape(points.n_features)
        constants = (*macros(points.rows, points.weights), ("ROW", width), ("LANES", lanes))
        grid, given = Grid(8 * n_processors(labels.device), 256), points_argument(points)
        Launch(
            "oversample.cu", name, labels.device, grid, Arguments(given, *arguments), constants
        )()

    fresh = fold.fresh.contiguous()
    if count:
        launch("approach_fresh", fresh, count, fold.known, labels, distances)
    ratios = torch.empty(points.n_rows, dtype=torch.float64, device=labels.device)
    counters = (ctypes.c_int64(number) for number in (start, fold.seed, fold.number))
    launch("drawing_ratios", distances, *counters, float(fold.most), ratios)
    mass = total(distances, points.weights)
    rows = (ratios > mass).nonzero()[:, 0]
    attracted = group_sums(points, labels, fold.known + count, rows_too=False).masses
    return mass, ratios[rows], rows + start, attracted
