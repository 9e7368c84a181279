"""Lloyd's algorithm on batches of tasks: the baseline that training is measured against."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.random_numbers import integers, stream_keys, uniform
from lloydformer.numerics.means import means_or


def lloyd_step(
    points: Float[Tensor, "r b n d"],
    centers: Float[Tensor, "r b k d"],
    seeds: Int[Tensor, " r"],
    step: Int[Tensor, ""],
) -> Float[Tensor, "r b k d"]:
    """Move each center to the mean of its points; an empty cluster takes a random point.

    `seeds` and `step` determine the random points.
    """
    n, k = points.shape[2], centers.shape[2]
    labels = expanded_distances(points, centers).argmin(dim=-1)
    members = torch.nn.functional.one_hot(labels, k).to(points)  # (r, b, n, k)
    u = uniform(stream_keys(seeds, "empty", step), *centers.shape[1:3])
    drawn = integers(u, 0, n - 1)  # (r, b, k)
    others = points.gather(2, drawn.unsqueeze(-1).expand_as(centers))
    return means_or(members.mT @ points, members.sum(dim=2), others)
