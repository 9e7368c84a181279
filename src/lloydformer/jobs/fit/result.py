"""The result of a fit: the model, the rows of each cluster, and what is derived from them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.opened import OpenedTable
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.assignment import Assignment
from lloydformer.jobs.fit.sample import Sample, silhouettes


@dataclass(frozen=True)
class FitResult:
    """A fitted model, its data, and the cluster of every row."""

    model: Clusterer
    blocks: TensorBlocks
    """The data as the model compares rows: scaled, as directions if it compares those."""
    assignment: Assignment
    sample: Sample
    seconds: float
    table: OpenedTable | None = None
    """The table that the data come from."""

    @property
    def n_clusters(self) -> int:
        return len(self.model.cluster_centers_)

    @property
    def reached_max_iter(self) -> bool:
        """Whether the fit used all its iterations, so it may not have converged.

        An algorithm that draws has no other end, unless it has `patience`.
        """
        most = getattr(self.model, "max_iter", None)
        draws = hasattr(self.model, "best_objective_history_")
        return most is not None and self.model.n_iter_ >= most and not draws

    @cached_property
    def sizes(self) -> list[int]:
        return self.assignment.sizes(self.n_clusters).tolist()

    @cached_property
    def mean_distances(self) -> list[float]:
        return self.assignment.mean_distances(self.n_clusters).tolist()

    @cached_property
    def left_out(self) -> list[int] | None:
        """The number of rows left out near each center; None if the algorithm leaves none out."""
        out = self.assignment.left_out
        if out is None:
            return None
        return torch.bincount(self.assignment.clusters[out], minlength=self.n_clusters).tolist()

    @cached_property
    def sampled(self) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
        """The clusters and silhouettes of the sample, without rows left out."""
        rows, distances = self.sample.rows, self.sample.distances
        if (out := self.assignment.left_out) is not None:
            kept = ~out[rows]
            rows, distances = rows[kept], distances[kept][:, kept]
        clusters = self.assignment.clusters[rows].long()
        return clusters, silhouettes(distances, clusters, self.n_clusters)

    @property
    def silhouette(self) -> float | None:
        """The mean silhouette of the sample; None if all its rows are in one cluster."""
        clusters, values = self.sampled
        return values.mean().item() if len(set(clusters.tolist())) > 1 else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; x1, x2, ... by their numbers if they have none."""
        if self.table is not None:
            return self.table.conversion.labels
        return self.blocks.names or tuple(f"x{i + 1}" for i in range(self.blocks.n_features))
