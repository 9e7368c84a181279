"""A random sample of rows, for silhouettes and pictures, which would take O(n^2) on all rows."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks

SIZE = 2000
"""Rows of a sample."""


@dataclass(frozen=True)
class Sample:
    """m rows: their numbers in the data, coordinates, and distances to each other.

    Coordinates are scaled and centered as in the fit, and unit vectors if directions are compared.
    """

    rows: Int[Tensor, " m"]
    points: Float[Tensor, "m d"]
    distances: Float[Tensor, "m m"]


def draw_sample(blocks: TensorBlocks, seed: int, size: int = SIZE) -> Sample:
    """Draw rows without replacement; all rows if there are no more than `size`.

    Distances are Euclidean; 1 - cosine if the blocks hold directions.
    """
    count = min(size, blocks.n_rows)
    chosen = np.random.default_rng(seed).choice(blocks.n_rows, size=count, replace=False)
    rows = torch.from_numpy(np.sort(chosen))
    points = blocks.take(rows).double()
    distances = torch.cdist(points, points)
    return Sample(rows, points, distances.square() / 2 if blocks.directions else distances)


def silhouettes(
    distances: Float[Tensor, "m m"], labels: Int[Tensor, " m"], n_clusters: int
) -> Float[Tensor, " m"]:
    r"""Silhouettes (Rousseeuw, 1987), from -1 to 1; near 1, a point is well inside its cluster.

    $s_i = (b_i - a_i) / \max(a_i, b_i)$, where $a_i$ is the mean distance to the other points of
    the same cluster and $b_i$ the smallest mean distance to the points of another cluster. A point
    alone in its cluster has 0.
    """
    members = torch.nn.functional.one_hot(labels.long(), n_clusters).to(distances)
    counts = members.sum(dim=0)
    sums = distances @ members
    own = labels.long()[:, None]
    others = counts[labels.long()] - 1
    inside = sums.gather(1, own)[:, 0] / others.clamp(min=1)
    means = torch.where(counts > 0, sums / counts.clamp(min=1), torch.inf)
    outside = means.scatter(1, own, torch.inf).amin(dim=1)
    ratio = (outside - inside) / torch.maximum(outside, inside).clamp(min=1e-300)
    return torch.where((others > 0) & outside.isfinite(), ratio, 0.0)
