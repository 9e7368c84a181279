"""Relocation on a GPU: folds that split clusters and remove centers."""

from typing import Any

import torch

from lloydformer.engines.cuda.groups import group_sums, has_kernels, two_nearest
from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.noise import drawn_rows, noise_argument
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.plans.pruning import Parted, TwoNearest
from lloydformer.plans.splitting import Drawn, Errors, Halves

_ROOM = 200 * 1024
"""Bytes of shared memory for the sums of all groups of one draw."""


def errors(opened: PointsOnGpu, fold: Errors) -> Any:
    """Labels and distances; for each cluster sums, mass and error."""
    if not has_kernels(opened):
        return None
    known = opened.labelled_by(fold.centers)
    if known is None:
        return None
    state, k = opened.state, len(fold.centers)
    distances = state.column("distances")
    known[1].measure(distances)
    found = group_sums(opened.points, state.column("labels"), k, distances)
    return found.sums, found.masses, found.extras


def drawn(opened: PointsOnGpu, fold: Drawn) -> Any:
    """For each chosen cluster and draw the largest score, its row and its point."""
    if not has_kernels(opened):
        return None
    points, draws, state = opened.points, fold.draws, opened.state
    noise = noise_argument(
        draws.seed, draws.layer, fold.head, draws.n_draws, opened.blocks.first_row
    )
    given = (
        state.column("labels"), state.column("distances"), fold.place.int().contiguous(), noise,
    )  # fmt: skip
    best, rows = drawn_rows(points, "drawn", fold.count * draws.n_draws, *given)
    shape = (fold.count, draws.n_draws)
    taken = opened.blocks.take(rows).double()
    return best.view(shape), (rows + opened.blocks.first_row).view(shape), taken.view(*shape, -1)


def halves(opened: PointsOnGpu, fold: Halves) -> Any:
    """Sums and masses of a cluster's points that are nearer to a drawn point."""
    if not has_kernels(opened):
        return None
    (count, draws, d), points, state = fold.points.shape, opened.points, opened.state
    if 8 * count * max(draws, d + 2) > _ROOM:
        return None
    device, (width, lanes) = points.rows.device, row_shape(d)
    groups = torch.empty(draws, points.n_rows, dtype=torch.int32, device=device)
    numbers = torch.zeros(count, draws, 2, dtype=torch.int32, device=device)
    places, drawn_points = fold.place.int().contiguous(), fold.points.contiguous()
    given = Arguments(
        points_argument(points), state.column("labels"), state.column("distances"), places,
        drawn_points, count, draws, groups, numbers,
    )  # fmt: skip
    constants = (*macros(points.rows, points.weights), ("ROW", width), ("LANES", lanes))
    grid = Grid(8 * n_processors(device), 256, 8 * count * draws)
    Launch("draws.cu", "halve", device, grid, given, constants)()
    found = group_sums(points, groups, count * draws)
    near = found.sums.view(draws, count, d).transpose(0, 1)
    masses, whole = found.masses.view(draws, count).T, numbers.double()
    return near, masses, whole[..., 0], whole[..., 1]


def removable(opened: PointsOnGpu, fold: TwoNearest) -> Any:
    """The two nearest centers; for each cluster sums, mass and utility."""
    if not has_kernels(opened):
        return None
    points, state = opened.points, opened.state
    labels = state.column("labels")
    near, far = two_nearest(points, fold.centers, labels, state.column("second"))
    opened.labelled = False
    found = group_sums(points, labels, len(fold.centers), far - near)
    return found.sums, found.masses, found.extras


def parted(opened: PointsOnGpu, fold: Parted) -> Any:
    """Sums and masses of some clusters' points, by second nearest center."""
    if not has_kernels(opened):
        return None
    k, q, state = fold.n_clusters, len(fold.candidates), opened.state
    first = torch.full((k,), -1, dtype=torch.int32, device=fold.candidates.device)
    first[fold.candidates] = k * torch.arange(q, dtype=torch.int32, device=first.device)
    own = first[state.column("labels")]
    pairs = torch.where(own < 0, own, own + state.column("second"))
    found = group_sums(opened.points, pairs, q * k)
    return found.sums.view(q, k, -1), found.masses.view(q, k)
