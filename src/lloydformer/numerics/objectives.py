"""The k-means objective, by which all recipes are compared."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.distances import squared_distances


def kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    r"""Return the k-means objective, $\sum_i \min_j \lVert x_i - c_j \rVert^2$ (eq:kmeans-dc)."""
    return squared_distances(points, centers).amin(dim=-1).sum(dim=-1)


def log_kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    """Return the natural logarithm of the k-means objective, as in the paper's tables."""
    return torch.log(kmeans_objective(points, centers))
