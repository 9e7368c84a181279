"""The Gaussian mixtures of fig:numerical_validation and fig:parameter_sweep."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

VARIANCE = 0.01


@dataclass(frozen=True)
class MixtureSize:
    """The size of one data set: numbers of clusters, dimensions and points, and the scale."""

    clusters: int
    dimensions: int
    scale: int
    points: int


def mixture(
    size: MixtureSize, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """Draw the points, and choose k of them as initial centers.

    There is one Gaussian for each cluster, all with the same number of points. Means are uniform
    in [0, 1]^d and every variance is 0.01; then each column is scaled to [0, scale]. Numbers are
    float32, as the authors'.
    """
    k, d, each = size.clusters, size.dimensions, size.points // size.clusters
    device = generator.device
    means = torch.rand(k, 1, d, generator=generator, device=device)
    noise = torch.randn(k, each, d, generator=generator, device=device)
    points = (means + VARIANCE**0.5 * noise).reshape(k * each, d)
    low, high = points.aminmax(dim=0)
    points = (points - low) / (high - low) * size.scale
    chosen = torch.randperm(len(points), generator=generator, device=device)[:k]
    return points, points[chosen]
