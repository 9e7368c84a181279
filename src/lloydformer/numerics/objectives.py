"""The objective that all recipes are judged by."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.distances import squared_distances


def kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    r"""The k-means objective, $\sum_i \min_j \lVert x_i - c_j \rVert^2$ (eq:kmeans-dc)."""
    return squared_distances(points, centers).amin(dim=-1).sum(dim=-1)


def log_kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    """Its natural logarithm, the unit of the paper's tables."""
    return torch.log(kmeans_objective(points, centers))
