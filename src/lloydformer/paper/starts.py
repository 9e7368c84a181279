"""Initial centers for batches of tasks, and Lloyd's algorithm from them."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.tasks import Batch
from lloydformer.solving.batch.seeding import kmeans_plusplus, random_rows
from lloydformer.solving.batch.steps import DenseProblems

PLAIN = 1
"""Candidates for each center in plain k-means++, as published."""


def greedy(n_clusters: int) -> int:
    """Candidates for each center in greedy k-means++, as in scikit-learn."""
    return 2 + int(math.log(n_clusters))


def plusplus(batch: Batch, candidates: int, seed: int) -> Batch:
    """The same tasks with k-means++ centers; each is the best of `candidates` draws."""
    points, k = batch.points[0], batch.centers.shape[2]
    draws = _uniform(seed, len(points), k, candidates)
    weights = torch.ones(points.shape[:2], dtype=torch.float64, device=points.device)
    none = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    unit = weights[:, 0]  # 1 for each problem
    problems = DenseProblems(points.double(), weights, none, unit)
    return _from_rows(batch, kmeans_plusplus(problems, draws))


def at_random(batch: Batch, seed: int) -> Batch:
    """The same tasks with other random points as centers."""
    draws = _uniform(seed, *batch.points.shape[1:3])
    return _from_rows(batch, random_rows(torch.ones_like(draws), batch.centers.shape[2], draws))


@torch.no_grad()
def descended(batch: Batch, n_steps: int, seed: int) -> Float[Tensor, "r b"]:
    """The log objective after `n_steps` Lloyd steps from the centers of the batch.

    The centers may have a longer first axis than the points, which are then shared.
    """
    points, centers = batch
    seeds = torch.full((len(centers),), seed, device=points.device)
    ends = lloyd_path(points, centers, seeds, n_steps)[-1]
    points = points.expand(len(centers), -1, -1, -1)
    return smoothed_objective(points, ends, smoothing="exact").log().cpu()


def best_of(batches: list[Batch], n_steps: int, seed: int) -> Float[Tensor, " b"]:
    """The lowest final log objective of each task over several starts."""
    return torch.stack([descended(batch, n_steps, seed)[0] for batch in batches]).amin(dim=0)


def _from_rows(batch: Batch, rows: Tensor) -> Batch:
    """The tasks with these rows of their points as centers."""
    places = rows.to(batch.points.device)[None, :, :, None]
    return Batch(batch.points, batch.points.gather(2, places.expand_as(batch.centers)))


def _uniform(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64)
