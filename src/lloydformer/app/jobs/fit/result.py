"""The result of a fit: the model, the cluster of every row, and what follows from them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sources import OpenedTable, rows_in_table
from lloydformer.estimators.base import Clusterer
from lloydformer.fork_safety import cached_property

# Rows of a sample. Silhouettes take the distances of all pairs: 32 MB in float64 for 2000 rows.
SAMPLE_SIZE = 2000


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


def assign_rows(model: Clusterer, blocks: TensorBlocks, labels: Any = None) -> Assignment:
    """Assign each row to its nearest center.

    `labels`: the `labels_` of the fit, if the model was fitted on these rows. They save a
    prediction, and tell which rows the fit left out (label -1).
    """
    clusters, left_out = labels, None
    # Rows left out have the label -1, but they too have a nearest center.
    if labels is not None and hasattr(model, "outliers_"):
        clusters, left_out = None, torch.as_tensor(labels) == -1
    if clusters is None:
        clusters = model.predict(blocks)
    # Not `transform`: of n x k distances, n are needed.
    distances = model.distances_to_centers(blocks, clusters)
    return Assignment(torch.as_tensor(clusters), torch.as_tensor(distances), left_out)


@dataclass(frozen=True)
class Sample:
    """m rows: their numbers in the data, coordinates, and distances to each other.

    Coordinates are scaled and centered as in the fit, and unit vectors if directions are compared.
    """

    rows: Int[Tensor, " m"]
    points: Float[Tensor, "m d"]
    distances: Float[Tensor, "m m"]


def draw_sample(blocks: TensorBlocks, seed: int, size: int = SAMPLE_SIZE) -> Sample:
    """Draw rows without replacement; all rows if there are no more than `size`.

    Distances are Euclidean; 1 - cosine if the blocks hold directions.
    """
    count = min(size, blocks.n_rows)
    chosen = np.random.default_rng(seed).choice(blocks.n_rows, size=count, replace=False)
    rows = torch.from_numpy(np.sort(chosen))
    points = blocks.take(rows).double()
    distances = torch.cdist(points, points)
    # Of unit vectors, |x - y|^2 / 2 = 1 - cosine.
    return Sample(rows, points, distances.square() / 2 if blocks.directions else distances)


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


@dataclass(frozen=True)
class FitRun:
    """The numbers of one fit, for the comparison of numbers of clusters.

    `criterion` chooses the number; `selected` is its value, if it is not the silhouette.
    """

    k: int
    objective: float
    silhouette: float | None
    n_iter: int
    seconds: float
    criterion: str = "silhouette"
    selected: float | None = None

    @property
    def value(self) -> float | None:
        """The value of the criterion."""
        return self.silhouette if self.criterion == "silhouette" else self.selected

    @property
    def score(self) -> float:
        """The value of the criterion; below all others if there is none."""
        return -math.inf if self.value is None else self.value

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for summary.json, without k, which is their key there."""
        hidden = ("k", "criterion", "selected")
        values = {name: value for name, value in asdict(self).items() if name not in hidden}
        if self.criterion != "silhouette":
            values[self.criterion] = self.selected
        return values


@dataclass(frozen=True)
class FitResult:
    """A fitted model, its data, and the cluster of every row.

    Attributes
    ----------
    model : Clusterer
        The fitted model.
    table : OpenedTable
        The table that the data come from.
    blocks : TensorBlocks
        The data as the model compares rows: scaled, as directions if it compares those.
    assignment : Assignment
        The cluster of every row.
    sample : Sample
        Rows for silhouettes and pictures.
    seconds : float
        Duration of the fit.
    runs : tuple of FitRun
        The fits of all numbers of clusters that were tried.
    notes, advice : tuple of str
        What was recognised, left out or warned of; what may mislead.
    """

    model: Clusterer
    table: OpenedTable
    blocks: TensorBlocks
    assignment: Assignment
    sample: Sample
    seconds: float
    runs: tuple[FitRun, ...] = ()
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.model.cluster_centers_)

    @property
    def reached_max_iter(self) -> bool:
        """True if the fit used all its iterations, so it may not have converged.

        An algorithm that draws has no other end, unless it has `patience`.
        """
        most = getattr(self.model, "max_iter", None)
        draws = hasattr(self.model, "best_objective_history_")
        return most is not None and self.model.n_iter_ >= most and not draws

    @cached_property
    def totals(self) -> ClusterTotals:
        """Sizes, mean distances and rows left out of the clusters."""
        return self.assignment.totals(self.n_clusters)

    @property
    def kept_sample(self) -> Bool[Tensor, " m"]:
        """A mask of the sample without rows left out."""
        rows, out = self.sample.rows, self.assignment.left_out
        return torch.ones_like(rows, dtype=torch.bool) if out is None else ~out[rows]

    @cached_property
    def sample_silhouettes(self) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
        """The clusters and silhouettes of the sample, without rows left out."""
        kept = self.kept_sample
        clusters = self.assignment.clusters[self.sample.rows[kept]].long()
        distances = self.sample.distances
        if self.assignment.left_out is not None:  # else a copy of 32 MB for nothing
            distances = distances[kept][:, kept]
        return clusters, silhouettes(distances, clusters, self.n_clusters)

    @property
    def silhouette(self) -> float | None:
        """The mean silhouette of the sample; None if all its rows are in one cluster."""
        clusters, values = self.sample_silhouettes
        return values.mean().item() if len(set(clusters.tolist())) > 1 else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; x1, x2, ... by their numbers if they have none."""
        return self.table.conversion.labels

    @property
    def categories(self) -> list[str | None]:
        """The word that each column of the points encodes; None for columns of numbers."""
        return [word for f in self.table.conversion.features for word in f.words or (None,)]

    def table_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the rows of the table, from 0, that became these rows of points."""
        return rows_in_table(np.array(rows, dtype=np.int64), self.table.dropped).tolist()
