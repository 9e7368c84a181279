"""A sample of rows with their distances to each other, and their silhouettes."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sparse_blocks import SparseBlocks

# Rows of a sample. Silhouettes take the distances of all pairs: 32 MB in float64 for 2000 rows.
SAMPLE_SIZE = 2000
# Numbers of the sample as dense rows: 256 MB in float64. Texts have 100,000 columns, and then the
# sample has 335 rows.
_MOST_NUMBERS = 1 << 25


@dataclass(frozen=True)
class Sample:
    """m rows: their numbers in the data, coordinates, and distances to each other.

    Coordinates are scaled and centered as in the fit, and unit vectors if directions are compared.
    """

    rows: Int[Tensor, " m"]
    points: Float[Tensor, "m d"]
    distances: Float[Tensor, "m m"]


def draw_sample(
    blocks: TensorBlocks | SparseBlocks,
    seed: int,
    size: int = SAMPLE_SIZE,
    metric: str | None = None,
) -> Sample:
    """Draw rows without replacement; all rows if there are no more than `size`.

    Distances are Euclidean; 1 - cosine if the blocks hold directions, or for that `metric`.
    """
    n_rows, n_features = blocks.layout.n_rows, blocks.layout.n_features
    count = min(size, n_rows, max(2, _MOST_NUMBERS // n_features))
    chosen = np.random.default_rng(seed).choice(n_rows, size=count, replace=False)
    rows = torch.from_numpy(np.sort(chosen))
    points = fill_by_neighbours(blocks.take(rows).double())
    if metric == "manhattan":
        return Sample(rows, points, torch.cdist(points, points, p=1))
    if metric == "cosine" and not blocks.directions:
        given = points + blocks.layout.origin  # an angle depends on the origin
        points = given / given.norm(dim=1, keepdim=True).clamp(min=1e-300)
        return Sample(rows, points, torch.cdist(points, points).square() / 2)
    distances = torch.cdist(points, points)
    # Of unit vectors, |x - y|^2 / 2 = 1 - cosine.
    return Sample(rows, points, distances.square() / 2 if blocks.directions else distances)


def fill_by_neighbours(points: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    """Return points whose missing values (NaN) are the means of their five nearest neighbours.

    Silhouettes and the choice of k need whole rows. Filled in with means of the columns, rows with
    the same values missing would look like a cluster.
    """
    if not bool(points.isnan().any()):
        return points
    # Imported here: it takes a tenth of a second, and few tables need it.
    from sklearn.impute import KNNImputer

    filled = KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform(points.numpy())
    return torch.from_numpy(filled)


def silhouettes(
    distances: Float[Tensor, "m m"], labels: Int[Tensor, " m"], n_clusters: int
) -> Float[Tensor, " m"]:
    r"""Return silhouettes (Rousseeuw, 1987), from -1 to 1; near 1, a point is inside its cluster.

    $s_i = (b_i - a_i) / \max(a_i, b_i)$, where $a_i$ is the mean distance to the other points of
    the same cluster and $b_i$ the smallest mean distance to the points of another cluster. A point
    alone in its cluster has 0. As scikit-learn's, but for distances that are computed once for
    all numbers of clusters.
    """
    members = torch.nn.functional.one_hot(labels.long(), n_clusters).to(distances)
    counts = members.sum(dim=0)
    sums = distances @ members
    own = labels.long()[:, None]
    others = counts[labels.long()] - 1
    inside = sums.gather(1, own)[:, 0] / others.clamp(min=1)
    means = torch.where(counts > 0, sums / counts.clamp(min=1), torch.inf)
    outside = means.scatter(1, own, torch.inf).amin(dim=1)
    # 1e-300: equal points have 0 / 0 otherwise.
    ratio = (outside - inside) / torch.maximum(outside, inside).clamp(min=1e-300)
    return torch.where((others > 0) & outside.isfinite(), ratio, 0.0)
