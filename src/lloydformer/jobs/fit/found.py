"""What a fit found: each row's cluster and distance, and what follows from them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks, ranges
from lloydformer.estimators import TrimmedKMeans
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.sample import Sample, silhouettes


@dataclass(frozen=True)
class Assignment:
    """Each row's nearest center, its distance from it, and whether it was left out.

    Distances are in the units of the fit, scaled where that was; 1 - cosine where directions are
    compared.
    """

    clusters: Int[Tensor, " n"]
    distances: Float[Tensor, " n"]
    left_out: Bool[Tensor, " n"] | None

    def counted(self, n_clusters: int) -> Int[Tensor, " k"]:
        """How many rows each cluster has, without those left out."""
        kept = self.clusters if self.left_out is None else self.clusters[~self.left_out]
        return torch.bincount(kept, minlength=n_clusters)

    def means(self, n_clusters: int) -> Float[Tensor, " k"]:
        """The mean distance of the rows that each cluster has."""
        away = self.distances.double()
        if self.left_out is not None:
            away = away * ~self.left_out
        sums = torch.bincount(self.clusters, away, minlength=n_clusters)
        return sums / self.counted(n_clusters).clamp(min=1)


def assigned(model: Clusterer, blocks: TensorBlocks, labels: Any = None) -> Assignment:
    """Where a fitted model puts rows; `labels` are those of its fit, if these are its data."""
    fitted = None if labels is None else torch.as_tensor(labels)
    left_out = fitted == -1 if fitted is not None and isinstance(model, TrimmedKMeans) else None
    if fitted is None or left_out is not None:
        fitted = torch.as_tensor(model.predict(blocks))
    seen = as_seen(model, blocks)
    centers = seen.layout.place(torch.as_tensor(model.cluster_centers_)).to(seen.dtype)
    parts = [
        seen.read(start, stop).squared_distances(centers, fitted[start:stop].long())
        for start, stop in ranges(seen.layout)
    ]
    squares = torch.cat(parts)
    return Assignment(fitted, squares / 2 if model._directions else squares.sqrt(), left_out)


def as_seen(model: Clusterer, blocks: TensorBlocks) -> TensorBlocks:
    """The blocks as this model looks at them: by directions, or scaled as in its fit."""
    view = model._view
    return replace(
        blocks, directions=model._directions, scaling=view.scaling, seen_from=view.origin
    )


@dataclass(frozen=True)
class Found:
    """A fitted model, its data, and where every row went."""

    model: Clusterer
    blocks: TensorBlocks
    assignment: Assignment
    sample: Sample
    seconds: float

    @property
    def n_clusters(self) -> int:
        return len(self.model.cluster_centers_)

    @property
    def ran_out(self) -> bool:
        """Did the number of iterations end it, maybe before it settled?"""
        return self.model.n_iter_ >= self.model.max_iter

    @cached_property
    def sizes(self) -> list[int]:
        return self.assignment.counted(self.n_clusters).tolist()

    @cached_property
    def mean_distances(self) -> list[float]:
        return self.assignment.means(self.n_clusters).tolist()

    @cached_property
    def left_out(self) -> list[int] | None:
        """How many rows near each center were left out, where the algorithm leaves any out."""
        out = self.assignment.left_out
        if out is None:
            return None
        return torch.bincount(self.assignment.clusters[out], minlength=self.n_clusters).tolist()

    @cached_property
    def sampled(self) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
        """The clusters and silhouettes of the sample's rows, without those left out."""
        rows, distances = self.sample.rows, self.sample.distances
        if (out := self.assignment.left_out) is not None:
            kept = ~out[rows]
            rows, distances = rows[kept], distances[kept][:, kept]
        clusters = self.assignment.clusters[rows].long()
        return clusters, silhouettes(distances, clusters, self.n_clusters)

    @property
    def silhouette(self) -> float | None:
        """The mean over the sample; None where there is one cluster only."""
        clusters, values = self.sampled
        return values.mean().item() if len(set(clusters.tolist())) > 1 else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; x1, x2, ... where they have none."""
        return self.blocks.names or tuple(f"x{i + 1}" for i in range(self.blocks.n_features))
