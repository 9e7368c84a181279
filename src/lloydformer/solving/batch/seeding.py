"""Initial centers for many problems at once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.solving.batch.steps import DenseProblems, scores


def random_rows(
    weights: Float[Tensor, "b n"], n_clusters: int, uniform: Float[Tensor, "b n"]
) -> Int[Tensor, "b k"]:
    """k different rows of each problem, drawn by weight: the largest of u^(1/w)."""
    keys = uniform.log() / weights  # u^(1/w), as a logarithm
    keys = keys.clamp(min=torch.finfo(keys.dtype).min).masked_fill(weights == 0, -torch.inf)
    return keys.topk(n_clusters, dim=1).indices


def kmeans_plusplus(
    problems: DenseProblems, draws: Float[Tensor, "b k trials"]
) -> Int[Tensor, "b k"]:
    """Greedy k-means++: each seed is the best of some candidates, drawn from [0, 1)."""
    n, draws = problems.points.shape[1], draws.to(problems.points.device)
    rows = _quantiles(problems.weights, draws[:, 0, :1])
    nearest = _distances(problems, rows)[..., 0]
    for j in range(1, draws.shape[1]):
        masses = nearest * problems.weights
        left = masses.sum(dim=1, keepdim=True) > 0  # else every point with weight is a seed already
        masses = torch.where(left, masses, problems.weights)
        candidates = _quantiles(masses, draws[:, j])  # (b, trials)
        away = torch.minimum(_distances(problems, candidates), nearest.unsqueeze(-1))
        best = (away * problems.weights.unsqueeze(-1)).sum(dim=1).argmin(dim=1)
        rows = torch.cat([rows, candidates.gather(1, best[:, None])], dim=1)
        nearest = away.gather(2, best[:, None, None].expand(-1, n, 1))[..., 0]
    return rows


def _quantiles(masses: Float[Tensor, "b n"], draws: Float[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    reached = masses.cumsum(dim=1)
    whole = reached[:, -1:].contiguous()
    last = torch.searchsorted(reached, whole)  # rounding must not lead beyond it
    return torch.searchsorted(reached, draws * whole, right=True).minimum(last)


def _distances(problems: DenseProblems, rows: Int[Tensor, "b t"]) -> Float[Tensor, "b n t"]:
    squares = torch.linalg.vecdot(problems.points, problems.points).unsqueeze(-1)
    return (scores(problems, problems.take(rows)) + squares).clamp(min=0)
