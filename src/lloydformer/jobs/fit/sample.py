"""Some rows of the data, as the algorithm sees them, for what would take n^2 on all of them."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks

SIZE = 2000


@dataclass(frozen=True)
class Sample:
    """m rows: their global numbers, coordinates, and distances to each other."""

    rows: Int[Tensor, " m"]
    points: Float[Tensor, "m d"]
    distances: Float[Tensor, "m m"]


def draw(blocks: TensorBlocks, seed: int, size: int = SIZE) -> Sample:
    """Rows drawn without replacement, all of them if they are few; directions have cosines."""
    count = min(size, blocks.n_rows)
    chosen = np.random.default_rng(seed).choice(blocks.n_rows, size=count, replace=False)
    rows = torch.from_numpy(np.sort(chosen))
    points = blocks.take(rows).double()
    away = torch.cdist(points, points)
    return Sample(rows, points, away.square() / 2 if blocks.directions else away)


def silhouettes(
    distances: Float[Tensor, "m m"], labels: Int[Tensor, " m"], n_clusters: int
) -> Float[Tensor, " m"]:
    r"""How much nearer a point is to its own cluster than to the next one, from -1 to 1.

    $s_i = (b_i - a_i) / \max(a_i, b_i)$ with $a_i$ the mean distance to the others of its cluster
    and $b_i$ the smallest mean distance to another one (Rousseeuw, 1987). A point alone in its
    cluster has 0.
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
