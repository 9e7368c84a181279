"""A fitted model together with rows: what reports, plots and descriptions are made of."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.data.array_api import get_namespace, to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.estimators.mixture import AnyClusterer
from lloydformer.estimators.source import read, weights_in_units
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.checks import ArgumentError
from lloydformer.profiles.assignment import Assignment, ClusterTotals, assign_rows
from lloydformer.profiles.other_columns import OtherColumn, read_other_columns
from lloydformer.profiles.sample import Sample, draw_sample, silhouettes
from lloydformer.profiles.statistics import ClusterStatistics, compute_statistics
from lloydformer.profiles.words import format_number

# X are the rows of the fit if `predict` and `labels_` agree on this share of the rows that were not
# left out. Not on all: rows as near to two centers may have either label.
_SAME_ROWS = 0.999
# Returns names of columns and cells of some rows, as the user knows them.
ShowRows = Callable[[Sequence[int]], tuple[list[str], list[list[str]]]]


@dataclass(frozen=True)
class Clustering:
    """A fitted model, rows, and the cluster of every row.

    Attributes
    ----------
    model : AnyClusterer
        The fitted model.
    blocks : TensorBlocks or SparseBlocks
        The rows, on the CPU, as the model compares them.
    assignment : Assignment
        The cluster of every row.
    sample : Sample
        Rows for silhouettes, maps and examples.
    columns : tuple of str
        The names of the columns.
    categories : tuple of str or None
        The word that each column encodes as 0 and 1; None for columns of numbers.
    opposites : dict of int to str
        The word of the rows with 0, for columns that hold both of two words, by their number.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    names : dict of int to str
        Names that the user gave to clusters.
    others : tuple of OtherColumn
        Columns that were not clustered.
    left_out_columns : tuple of str
        Columns that were given but have no profile, as they name the rows.
    shown_rows : callable or None
        How the user knows the rows; None shows the columns by their numbers of rows.
    seed : int
        Drew the samples.
    """

    model: AnyClusterer
    blocks: TensorBlocks | SparseBlocks
    assignment: Assignment
    sample: Sample
    columns: tuple[str, ...]
    categories: tuple[str | None, ...]
    opposites: Mapping[int, str] = field(default_factory=dict)
    weights: np.ndarray | None = None
    names: Mapping[int, str] | None = None
    others: tuple[OtherColumn, ...] = ()
    left_out_columns: tuple[str, ...] = ()
    shown_rows: ShowRows | None = None
    seed: int = 0

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.model.cluster_centers_)

    @property
    def n_rows(self) -> int:
        """The number of rows, those left out included."""
        return self.blocks.layout.n_rows

    @property
    def points(self) -> Any:
        """The rows in the units of the data: a tensor, or a CSR matrix."""
        blocks = self.blocks
        return blocks.matrix if isinstance(blocks, SparseBlocks) else blocks.data_points

    @cached_property
    def centers(self) -> Float[Tensor, "k d"]:
        """The centers in the coordinates of `sample.points`."""
        centers = to_tensor(self.model.cluster_centers_).cpu()
        placed = self.blocks.layout.to_row_units(centers)
        if getattr(self.model, "metric", None) == "cosine":
            placed = torch.nn.functional.normalize(centers.double())
        return placed

    @cached_property
    def totals(self) -> ClusterTotals:
        """Sizes, mean distances and rows left out of the clusters."""
        return self.assignment.totals(self.n_clusters)

    @cached_property
    def shares(self) -> list[float]:
        """The share of each cluster in all rows, by weight; rows left out are in no cluster."""
        if self.weights is None:
            return [size / max(self.n_rows, 1) for size in self.totals.sizes]
        kept = self.kept_clusters
        inside = kept >= 0
        sums = np.bincount(kept[inside], self.weights[inside], minlength=self.n_clusters)
        return (sums / self.weights.sum()).tolist()

    @cached_property
    def kept_clusters(self) -> np.ndarray:
        """The cluster of each row; -1 for rows left out."""
        clusters = self.assignment.clusters.cpu().numpy().astype(np.int64)
        if self.assignment.left_out is not None:
            clusters[self.assignment.left_out.cpu().numpy()] = -1
        return clusters

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

    @cached_property
    def cluster_silhouettes(self) -> list[float | None]:
        """The mean silhouette of each cluster in the sample; None if it has no row there."""
        clusters, values = self.sample_silhouettes
        if self.silhouette is None:
            return [None] * self.n_clusters
        own = (values[clusters == j] for j in range(self.n_clusters))
        return [part.mean().item() if len(part) else None for part in own]

    @cached_property
    def statistics(self) -> ClusterStatistics:
        """Statistics of the columns."""
        arguments = (self.kept_clusters, self.n_clusters, self.weights, self.seed)
        return compute_statistics(self.points, *arguments)

    def name(self, cluster: int) -> str:
        """Return the name of a cluster: its number, and the name that the user gave it."""
        given = (self.names or {}).get(cluster)
        return str(cluster) if given is None else f"{cluster} {given}"

    def show_rows(self, rows: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        """Return names of columns, and the cells of some rows, as the user knows them."""
        if self.shown_rows is not None:
            return self.shown_rows(rows)
        points = self.points
        part = points[list(rows)]
        values = part.toarray() if isinstance(self.blocks, SparseBlocks) else part.numpy()
        cells = [
            [str(row), *map(format_number, value)]
            for row, value in zip(rows, values.tolist(), strict=True)
        ]
        return ["row", *self.columns], cells


def open_clustering(
    model: Any,
    X: Any,
    *,
    names: Sequence[str] | Mapping[int, str] | None = None,
    extra: Any = None,
    sample_weight: Any = None,
    seed: int = 0,
) -> Clustering:
    """Assign the rows of X to the clusters of a fitted model; see `lf.describe` for the arguments.

    All is computed on the CPU, in this process.
    """
    if not isinstance(model, AnyClusterer):
        raise ValueError(
            f"model: found {type(model).__name__}; pass a fitted estimator of lloydformer, for "
            "instance lf.KMeans(3).fit(X); of a pipeline, its last step and the transformed rows"
        )
    check_is_fitted(model)
    metric = getattr(model, "metric", None)
    if metric == "precomputed" or callable(metric):
        raise ValueError(
            "model: its metric is "
            f"{'precomputed' if metric == 'precomputed' else 'a function'}, so clusters have no "
            "columns to describe; pass a model with metric 'euclidean', 'manhattan' or 'cosine'"
        )
    if isinstance(X, Shard) or is_collection(X):
        raise ArgumentError(
            "X",
            f"found {'a Shard' if isinstance(X, Shard) else 'a dask collection'}; pass rows that "
            "are in memory, for instance a sample: X.sample(frac=0.01).compute()",
        )
    rows, local = _to_cpu(X), _on_cpu(model)
    given = getattr(X, "columns", None)
    if not hasattr(model, "feature_names_in_") and given is not None:
        # A model that knows no names takes those of the frame; scikit-learn would warn of them.
        local.feature_names_in_ = np.array(list(given), dtype=object)
    source = read(local, rows, sample_weight, reset=False)
    blocks = source.blocks
    assert isinstance(blocks, TensorBlocks | SparseBlocks)
    n_rows, n_features = blocks.layout.n_rows, blocks.layout.n_features
    weights, unit = weights_in_units(sample_weight, n_rows)
    weights = None if weights is None else weights * unit
    columns = _column_names(model, X, n_features)
    # They have been compared, and scikit-learn warns of arrays without names.
    local.__dict__.pop("feature_names_in_", None)
    readable = blocks.matrix if isinstance(blocks, SparseBlocks) else replace(blocks, names=None)
    others, left_out = read_other_columns(extra, n_rows)
    return Clustering(
        model=local,
        blocks=blocks,
        assignment=_assign(local, readable, n_rows),
        sample=draw_sample(blocks, seed, metric=metric),
        columns=columns,
        categories=(None,) * n_features,
        weights=weights,
        names=check_names(names, len(local.cluster_centers_)),
        others=others,
        left_out_columns=left_out,
        shown_rows=_row_names(X, blocks, columns),
        seed=seed,
    )


def _to_cpu(X: Any) -> Any:
    if get_namespace(X) is not None:
        X = to_tensor(X)
    if isinstance(X, TensorBlocks):
        return replace(X, points=X.points.cpu(), given_origin=None, known_ends=None)
    return X.detach().cpu() if isinstance(X, Tensor) else X


def _on_cpu(model: AnyClusterer) -> AnyClusterer:
    """Return a copy of a model that computes on the CPU, in this process, without callbacks."""
    local = copy(model)
    local.device, local.engine, local.callback, local.verbose = None, "auto", None, 0
    for name in ("cluster_centers_", "labels_", "weights_", "means_", "covariances_"):
        values = vars(local).get(name)
        if values is None:
            continue
        if is_collection(values):  # the labels of a fit on a cluster
            del local.__dict__[name]
        else:
            setattr(local, name, to_tensor(values).cpu().numpy())
    return local


def _assign(model: AnyClusterer, rows: Any, n_rows: int) -> Assignment:
    """Assign rows to clusters; rows that the fit left out are left out, if they are these rows."""
    predicted = torch.as_tensor(model.predict(rows)).cpu()
    found = assign_rows(model, rows, None)
    fitted = getattr(model, "labels_", None)
    if hasattr(model, "prices_") and fitted is not None and len(fitted) == n_rows:
        # Bounds on sizes keep rows from their nearest center. These are the rows of the fit if the
        # labels have its inertia; with weights, which are not known here, they are not recognised.
        own = assign_rows(model, rows, fitted)
        inertia = own.distances.double().square().sum().item()
        return own if math.isclose(inertia, model.inertia_, rel_tol=1e-5) else found
    if not hasattr(model, "outliers_") or fitted is None or len(fitted) != n_rows:
        return found
    labels = torch.as_tensor(fitted)
    kept = labels >= 0
    is_same = (predicted[kept] == labels[kept]).double().mean().item() >= _SAME_ROWS
    return replace(found, left_out=~kept) if is_same else found


def _column_names(model: AnyClusterer, X: Any, n_features: int) -> tuple[str, ...]:
    """Return the names of the fit, or of the frame; x1, x2, ... if there are none."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = X.names if isinstance(X, TensorBlocks) else getattr(X, "columns", None)
    if names is None or len(names) != n_features:
        return tuple(f"x{i + 1}" for i in range(n_features))
    return tuple(map(str, names))


def _row_names(
    X: Any, blocks: TensorBlocks | SparseBlocks, columns: tuple[str, ...]
) -> ShowRows | None:
    """Return how the rows of a pandas frame are shown: by its index."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or len(index) != blocks.layout.n_rows:
        return None

    def show(rows: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        values = X.iloc[list(rows)].to_numpy().tolist()
        cells = [
            [str(index[row]), *map(format_number, value)]
            for row, value in zip(rows, values, strict=True)
        ]
        return [str(index.name or "index"), *columns], cells

    return show


def check_names(
    names: Sequence[str] | Mapping[int, str] | None, n_clusters: int
) -> dict[int, str] | None:
    """Return the names of clusters by their numbers; None if there are none."""
    if names is None:
        return None
    if isinstance(names, str):
        raise ValueError(f"names: found {names!r}; pass a list with a name for each cluster")
    if not isinstance(names, Mapping) and len(names) != n_clusters:
        raise ValueError(
            f"names: found {len(names)} names for {n_clusters} clusters; pass one for each, or a "
            "dict of some, as {0: 'small homes'}"
        )
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    found = {int(cluster): str(name) for cluster, name in pairs}
    if unknown := [cluster for cluster in found if not 0 <= cluster < n_clusters]:
        raise ValueError(
            f"names: found cluster {unknown[0]}; clusters are numbered 0 to {n_clusters - 1}"
        )
    return found
