"""Lloyd's algorithm on batches of tasks, as what training is measured against."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.draws import keys, uniform, whole
from lloydformer.learning.objective import expanded_distances


def lloyd_step(
    points: Float[Tensor, "r b n d"],
    centers: Float[Tensor, "r b k d"],
    seeds: Int[Tensor, " r"],
    step: Int[Tensor, ""],
) -> Float[Tensor, "r b k d"]:
    """Each center to the mean of its points; one without points to a point drawn at random."""
    k = centers.shape[2]
    labels = expanded_distances(points, centers).argmin(dim=-1)
    members = torch.nn.functional.one_hot(labels, k).to(points)  # (r, b, n, k)
    counts = members.sum(dim=2).unsqueeze(-1)  # (r, b, k, 1)
    means = members.mT @ points / counts.clamp(min=1)
    drawn = whole(uniform(keys(seeds, "empty", step), *centers.shape[1:3]), 0, points.shape[2] - 1)
    others = points.gather(2, drawn.unsqueeze(-1).expand_as(centers))
    return torch.where(counts > 0, means, others)
