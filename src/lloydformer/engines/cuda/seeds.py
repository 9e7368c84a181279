"""Greedy k-means++ on the device, without waiting for the host."""

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.points import Points

_CHUNK, _MOST_TRIALS, _WIDEST = 1024, 16, 256


def knows(points: Points, draws: np.ndarray) -> bool:
    """Are there kernels for such points and draws?"""
    return points.n_features <= _WIDEST and draws.shape[1] <= _MOST_TRIALS


def seeds(points: Points, first: int, draws: np.ndarray, distances: Tensor) -> Tensor:
    """Rows (k,) of the seeds; fewer, if every point with weight is one.

    Parameters
    ----------
    points : Points
        The points.
    first : int
        The row of the first seed.
    draws : ndarray of shape (k - 1, trials)
        Numbers from [0, 1).
    distances : Tensor of shape (n,)
        Becomes the squared distance of each point to the nearest seed but the last.
    """
    device, trials, k = points.rows.device, draws.shape[1], len(draws) + 1
    sent = np.zeros(2 + k + draws.size, dtype=np.int64)  # count, ticket, rows, fractions
    sent[0], sent[2] = 1, first
    sent[2 + k :] = draws.reshape(-1).view(np.int64)
    there = torch.from_numpy(sent).to(device)
    count, ticket, rows, fractions = (there[i:] for i in (0, 1, 2, 2 + k))
    chunks, blocks = -(-points.n_rows // _CHUNK), 4 * n_processors(device)
    scratch = torch.empty(chunks + (blocks + 1) * _MOST_TRIALS, dtype=torch.int64, device=device)
    masses, partial, candidates = torch.split(
        scratch, [chunks, blocks * _MOST_TRIALS, _MOST_TRIALS]
    )
    given = points_argument(points)
    width, lanes = row_shape(points.n_features)
    constants = (*macros(points.rows, points.weights), ("D", width), ("LANES", lanes))
    shared = trials * width * points.rows.dtype.itemsize

    def launch(name: str, grid: Grid, *arguments: object) -> Launch:
        return Launch("seeds.cu", name, device, grid, Arguments(given, *arguments), constants)

    each = (
        launch(
            "approach", Grid(min(chunks, 16 * n_processors(device)), 256), distances, rows, count,
            masses,
        ),
        launch(
            "draw", Grid(trials, 256), distances, masses, chunks, fractions, count, candidates
        ),
        launch(
            "choose", Grid(blocks, 256, shared), distances, candidates, trials, rows, count,
            partial, ticket,
        ),
    )  # fmt: skip
    for kernel in each * (k - 1):
        kernel()
    return rows[: int(count[0])]
