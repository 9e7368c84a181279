"""Statistics of the columns of rows in clusters: means, quartiles, and how much clusters explain.

Rows that were left out count nowhere. With weights, a row of weight 2 counts as two rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

# Rows read at a time for means; bounds temporary memory.
_CHUNK = 1 << 16
# Quartiles are those of a sample of each cluster, and of all rows, if there are more. With 20,000
# rows a quartile's rank is off by 0.3 % (one standard error, sqrt(0.25 * 0.75 / 20,000)), less than
# the three digits that are shown.
MOST_ROWS = 20_000
_FEWEST_ROWS = 1000  # even if the rows are so wide that they take more than `_MOST_NUMBERS`
_MOST_NUMBERS = 1 << 24  # 128 MB in float64
# Columns that have quartiles: those that the clusters explain best. Texts have 100,000 columns.
MOST_COLUMNS = 500
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class ClusterStatistics:
    """Statistics of c columns in k clusters and in all rows.

    Attributes
    ----------
    chosen : ndarray of shape (c,)
        The numbers of these columns in the data.
    means, overall : ndarray of shape (k, c) and (c,)
        Means of the clusters and of all rows. NaN for an empty cluster.
    spread : ndarray of shape (c,)
        Standard deviations of all rows.
    explained : ndarray of shape (c,)
        Share of a column's variance that is between the means of the clusters (eta squared): 0 if
        all clusters have the same mean, 1 if a column is constant in every cluster.
    quartiles, overall_quartiles : ndarray of shape (3, k, c) and (3, c)
        Lower quartile, median and upper quartile. NaN for an empty cluster.
    """

    chosen: np.ndarray
    means: np.ndarray
    overall: np.ndarray
    spread: np.ndarray
    explained: np.ndarray
    quartiles: np.ndarray
    overall_quartiles: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """The z-scores (k, c): means of clusters less those of all rows, over the spread.

        0 for constant columns and empty clusters.
        """
        differences = np.nan_to_num(self.means - self.overall)
        return np.where(self.spread > 0, differences / np.where(self.spread > 0, self.spread, 1), 0)


def compute_statistics(
    points: Any,
    clusters: np.ndarray,
    n_clusters: int,
    weights: np.ndarray | None = None,
    seed: int = 0,
) -> ClusterStatistics:
    """Compute the statistics of columns.

    Parameters
    ----------
    points : Tensor or CSR matrix of shape (n, d)
        The rows. NaN in a dense column is a missing value, which counts nowhere.
    clusters : ndarray of shape (n,)
        The cluster of each row; -1 for rows left out.
    n_clusters : int
        Number of clusters.
    weights : ndarray of shape (n,), optional
        Weights of the rows.
    seed : int
        Draws the samples for quartiles.
    """
    moments = _sparse_moments if sparse.issparse(points) else _dense_moments
    mass = np.where(clusters >= 0, 1.0 if weights is None else weights, 0.0)
    means, overall, spread, explained = moments(points, clusters, n_clusters, mass)
    chosen = np.arange(len(overall))
    if len(chosen) > MOST_COLUMNS:
        chosen = np.sort(np.argsort(-explained, kind="stable")[:MOST_COLUMNS])
    rng = np.random.default_rng(seed)
    limit = int(np.clip(_MOST_NUMBERS // len(chosen), _FEWEST_ROWS, MOST_ROWS))
    kept = np.flatnonzero(mass > 0)
    by_cluster = kept[np.argsort(clusters[kept], kind="stable")]
    ends = np.searchsorted(clusters[by_cluster], np.arange(n_clusters + 1))
    groups = [by_cluster[ends[j] : ends[j + 1]] for j in range(n_clusters)]
    quartiles = np.full((3, n_clusters, len(chosen)), np.nan)
    for j, rows in enumerate(groups):
        if len(rows):
            quartiles[:, j] = _quartiles_of(points, chosen, _draw(rows, limit, rng), weights)
    everything = _quartiles_of(points, chosen, _draw(kept, limit, rng), weights)
    return ClusterStatistics(
        chosen,
        means[:, chosen],
        overall[chosen],
        spread[chosen],
        explained[chosen],
        quartiles,
        everything,
    )


def _draw(rows: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= limit else np.sort(rng.choice(rows, limit, replace=False))


def _quartiles_of(
    points: Any, columns: np.ndarray, rows: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Return the quartiles (3, c) of some columns in some rows."""
    if sparse.issparse(points):
        values = points[rows][:, columns].toarray()
    else:
        values = points[torch.from_numpy(rows)].double().numpy()
        values = values if len(columns) == values.shape[1] else values[:, columns]
    return weighted_quartiles(values, None if weights is None else weights[rows])


def weighted_quartiles(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the quartiles (3, c) of columns, without missing values; NaN if all are missing.

    Without weights they are interpolated, as those of pandas. With weights they are values of the
    column: the first at which the weights of the sorted values reach the share.
    """
    missing = np.isnan(values)
    if weights is None and not missing.any():
        return np.quantile(values, QUARTILES, axis=0)
    found = np.full((3, values.shape[1]), np.nan)
    for i, column in enumerate(values.T):
        own = column[~missing[:, i]]
        if len(own) == 0:
            continue
        if weights is None:
            found[:, i] = np.quantile(own, QUARTILES)
        else:
            mass = weights[~missing[:, i]]
            found[:, i] = np.quantile(own, QUARTILES, weights=mass, method="inverted_cdf")
    return found


Moments = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _dense_moments(
    points: Tensor, clusters: np.ndarray, n_clusters: int, mass: np.ndarray
) -> Moments:
    """Return means (k, d), overall means, standard deviations and explained shares (d,)."""
    n_columns = points.shape[1]
    # Values less those of one row: the moments of constant columns are exact.
    first = torch.nan_to_num(points[int(np.argmax(mass > 0))].double())
    labels, weights = torch.from_numpy(clusters).long().clamp(min=0), torch.from_numpy(mass)
    sums = torch.zeros(n_clusters, n_columns, dtype=torch.float64)
    counts, squares = torch.zeros_like(sums), torch.zeros(n_columns, dtype=torch.float64)
    for start in range(0, len(points), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        part = points[chunk].double() - first
        share = weights[chunk, None] * ~part.isnan()
        part = part.nan_to_num_()
        sums.index_add_(0, labels[chunk], share * part)
        counts.index_add_(0, labels[chunk], share)
        squares += (share * part.square()).sum(dim=0)
    return _moments(sums.numpy(), counts.numpy(), squares.numpy(), first.numpy())


def _sparse_moments(
    points: Any, clusters: np.ndarray, n_clusters: int, mass: np.ndarray
) -> Moments:
    """Return the same for a CSR matrix, whose rows stay sparse."""
    rows = np.arange(len(clusters))
    members = sparse.csr_array(
        (mass, (np.maximum(clusters, 0), rows)), shape=(n_clusters, len(clusters))
    )
    matrix = sparse.csr_array(points).astype(np.float64)
    sums = (members @ matrix).toarray()
    counts = np.broadcast_to(members.sum(axis=1)[:, None], sums.shape)
    squares = matrix.power(2).T @ mass
    return _moments(sums, counts, squares, np.zeros(matrix.shape[1]))


def _moments(
    sums: np.ndarray, counts: np.ndarray, squares: np.ndarray, first: np.ndarray
) -> Moments:
    """Return the moments from the sums over clusters (k, d) of values less `first`."""
    total = np.maximum(counts.sum(axis=0), 1e-300)  # 0 if all values are missing
    mean, own = sums.sum(axis=0) / total, sums / np.where(counts > 0, counts, 1.0)
    variance = np.maximum(squares / total - np.square(mean), 0.0)
    # A constant column, but for rounding.
    variance[np.sqrt(variance) <= 1e-12 * np.abs(mean + first)] = 0.0
    between = (counts * np.square(own - mean)).sum(axis=0) / total
    explained = np.clip(between / np.where(variance > 0, variance, 1.0), 0.0, 1.0)
    means = np.where(counts > 0, own + first, np.nan)
    return means, mean + first, np.sqrt(variance), np.where(variance > 0, explained, 0.0)


def share_of_words(
    codes: np.ndarray, n_words: int, clusters: np.ndarray, n_clusters: int, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of words in each cluster (k, w), and in all rows (w,).

    `codes` number the words of the rows; -1 is a missing value, which counts nowhere.
    """
    shares = np.zeros((n_clusters, n_words))
    known = (codes >= 0) & (clusters >= 0)
    np.add.at(shares, (clusters[known], codes[known]), mass[known])
    totals = shares.sum(axis=1, keepdims=True)
    overall = shares.sum(axis=0) / max(shares.sum(), 1e-300)
    return shares / np.where(totals > 0, totals, 1.0), overall
