"""The cluster of every row, and what is counted of the clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.estimators.mixture import AnyClusterer


@dataclass(frozen=True)
class Assignment:
    """The nearest center of each row, the distance to it, and the rows left out.

    Distances are in the units of the fit: scaled if the columns were scaled, 1 - cosine if the
    algorithm compares directions. `left_out` is None if the algorithm leaves no rows out.
    """

    clusters: Int[Tensor, " n"]
    distances: Float[Tensor, " n"]
    left_out: Bool[Tensor, " n"] | None

    def totals(self, n_clusters: int) -> "ClusterTotals":
        """Return the sizes and mean distances of the clusters."""
        totals, out = ClusterTotals(n_clusters), self.left_out
        totals.add(
            self.clusters.numpy(), self.distances.numpy(), None if out is None else out.numpy()
        )
        return totals


class ClusterTotals:
    """Sizes, mean distances and rows left out of each cluster, counted part by part."""

    def __init__(self, n_clusters: int) -> None:
        self.n_rows = 0
        self._sizes, self._sums = np.zeros(n_clusters, dtype=np.int64), np.zeros(n_clusters)
        self._left_out: np.ndarray | None = None

    def add(self, clusters: np.ndarray, distances: np.ndarray, left_out: np.ndarray | None) -> None:
        """Count some rows; `left_out` is None if the algorithm leaves no rows out."""
        k, self.n_rows = len(self._sizes), self.n_rows + len(clusters)
        if left_out is not None:
            counts = np.bincount(clusters[left_out], minlength=k)
            self._left_out = counts if self._left_out is None else self._left_out + counts
            clusters, distances = clusters[~left_out], distances[~left_out]
        self._sizes += np.bincount(clusters, minlength=k)
        # In float64: a float32 sum of millions of distances would lose digits.
        self._sums += np.bincount(clusters, distances.astype(np.float64), minlength=k)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each cluster, without rows left out."""
        return self._sizes.tolist()

    @property
    def mean_distances(self) -> list[float]:
        """The mean distance in each cluster, without rows left out; 0 for an empty one."""
        return (self._sums / np.maximum(self._sizes, 1)).tolist()

    @property
    def left_out(self) -> list[int] | None:
        """The number of rows left out near each center; None if the algorithm leaves none out."""
        return None if self._left_out is None else self._left_out.tolist()


def assign_rows(model: AnyClusterer, rows: Any, labels: Any = None) -> Assignment:
    """Assign each row to its nearest center; `rows` is what `predict` takes.

    `labels`: the `labels_` of the fit, if the model was fitted on these rows. They save a
    prediction, and tell which rows the fit left out (label -1).
    """
    clusters, left_out = labels, None
    # Rows left out have the label -1, but they too have a nearest center.
    if labels is not None and hasattr(model, "outliers_"):
        clusters, left_out = None, torch.as_tensor(labels) == -1
    if clusters is None:
        clusters = model.predict(rows)
    # Not `transform`: of n x k distances, n are needed.
    distances = model.distances_to_centers(rows, clusters)
    return Assignment(torch.as_tensor(clusters), torch.as_tensor(distances), left_out)
