"""Each row's cluster and its distance to the center."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.estimators.base import Clusterer


@dataclass(frozen=True)
class Assignment:
    """The nearest center of each row, the distance to it, and the rows left out.

    Distances are in the units of the fit: scaled if the columns were scaled, 1 - cosine if the
    algorithm compares directions. `left_out` is None if the algorithm leaves no rows out.
    """

    clusters: Int[Tensor, " n"]
    distances: Float[Tensor, " n"]
    left_out: Bool[Tensor, " n"] | None

    def sizes(self, n_clusters: int) -> Int[Tensor, " k"]:
        """The number of rows of each cluster, without rows left out."""
        kept = self.clusters if self.left_out is None else self.clusters[~self.left_out]
        return torch.bincount(kept, minlength=n_clusters)

    def mean_distances(self, n_clusters: int) -> Float[Tensor, " k"]:
        """The mean distance in each cluster, without rows left out; 0 for an empty cluster."""
        distances = self.distances.double()
        if self.left_out is not None:
            distances = distances * ~self.left_out
        sums = torch.bincount(self.clusters, distances, minlength=n_clusters)
        return sums / self.sizes(n_clusters).clamp(min=1)


def assign_rows(model: Clusterer, blocks: TensorBlocks, labels: Any = None) -> Assignment:
    """Assign each row to its nearest center.

    `labels`: the `labels_` of the fit, if the model was fitted on these rows. They save a
    prediction, and tell which rows the fit left out (label -1).
    """
    clusters, left_out = labels, None
    if labels is not None and hasattr(model, "outliers_"):
        clusters, left_out = None, torch.as_tensor(labels) == -1
    if clusters is None:
        clusters = model.predict(blocks)
    distances = model.distances_to_centers(blocks, clusters)
    return Assignment(torch.as_tensor(clusters), torch.as_tensor(distances), left_out)
