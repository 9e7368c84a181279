"""The moves of the search for medoids on rows in memory, for engines without kernels for them.

The loss is the sum of w_i r_i, r_i being the distance of row i to its nearest medoid; s_i is that
to the second nearest. No move raises the loss. docs/medoids.md describes the moves. This search
keeps k distances of every row; the kernels of the native engine keep two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy import ndarray
from scipy import sparse

from lloydformer.numerics.noise import gumbel
from lloydformer.numerics.search_constants import EXCHANGE_GAIN, RELOCATION_GAIN, SPLIT_SHARPNESS

METRICS = ("sqeuclidean", "euclidean", "manhattan", "cosine")  # of rows of numbers

# Candidates that are compared at once; the best of them is exchanged. The kernels hold this number
# in SIMD lanes (docs/medoids.md), and both searches must make the same draws.
BATCH = 32

# Candidates of a cluster in a descent: its rows nearest to its mean. Chosen together with the other
# settings on the sets that `TUNED` in benchmarks/medoids.py lists.
NEAR = 16


class RowDistances:
    """Distances between rows, and to means of rows if `has_means`; the base of three kinds."""

    has_means: ClassVar[bool] = True

    def __init__(self, data: Any) -> None:
        self.data = data
        self.n_rows = int(data.shape[0])

    def of_row(self, row: int) -> ndarray:
        """Return the distances of a row to all rows, (n,)."""
        raise NotImplementedError

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        """Return the distances of some rows to their weighted mean."""
        raise NotImplementedError("a matrix of distances has no means")

    def bound(self, r: ndarray) -> float:
        """Return an upper bound of all distances, from those of one row to all rows, (n,)."""
        # (2 sqrt(r))^2 by the triangle inequality, if distances are squared; otherwise 2 r suffices
        return 4 * float(r.max())


class PointDistances(RowDistances):
    """Distances of points (n, d) by a metric; for "cosine" they are unit vectors."""

    def __init__(self, points: ndarray, metric: str = "sqeuclidean") -> None:
        super().__init__(points)
        self.metric = metric

    def of_row(self, row: int) -> ndarray:
        return self._distances(self.data, self.data[row])

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        points = self.data[rows]
        # Not `weights @ points`: OpenBLAS ends the process where it gets no memory for it.
        sums = np.einsum("i,id->d", weights, points)
        return self._distances(points, sums / (weights.sum() or 1.0))

    def _distances(self, points: ndarray, target: ndarray) -> ndarray:
        difference = points - target
        if self.metric == "manhattan":
            return np.abs(difference).sum(axis=1)
        squares = np.einsum("id,id->i", difference, difference)
        if self.metric == "euclidean":
            return np.sqrt(squares)
        # |x - y|^2 / 2 is 1 - cos for unit vectors, and has no cancellation for close ones.
        return squares / 2 if self.metric == "cosine" else squares


class SparseCosines(RowDistances):
    """Cosine distances of sparse unit vectors, a CSR matrix (n, d)."""

    def of_row(self, row: int) -> ndarray:
        return self._distances(self.data, self.data[[row]])

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        points = self.data[rows]
        mean = sparse.csr_array(weights[None] / (weights.sum() or 1.0)) @ points
        return self._distances(points, mean)

    def _distances(self, points: Any, target: Any) -> ndarray:
        """Return |x - y|^2 / 2, which is 1 - cos for unit vectors; a mean is shorter."""
        squares = float(target.multiply(target).sum())
        products = np.asarray((points @ target.T).todense()).reshape(-1)
        return np.maximum((1 + squares) / 2 - products, 0.0)


class MatrixDistances(RowDistances):
    """A symmetric matrix (n, n) of distances."""

    has_means: ClassVar[bool] = False

    def __init__(self, matrix: ndarray) -> None:
        super().__init__(matrix)
        # Over all pairs: the triangle inequality may not hold for a given matrix.
        self._bound = 2 * float(matrix.max())

    def of_row(self, row: int) -> ndarray:
        return np.asarray(self.data[row], float)

    def bound(self, r: ndarray) -> float:
        return self._bound


@dataclass
class MedoidTable:
    """Medoids, and the two nearest of them for every row; on ties the lower place is nearer.

    Attributes
    ----------
    medoids : ndarray of shape (k,)
        Rows. The place of a medoid in this array is the number of its cluster.
    distances : ndarray of shape (k, n)
        Distances of the medoids to all rows.
    changed : ndarray of shape (k,)
        Number of rows that joined or left each cluster since it was last examined.
    counted : ndarray of shape (n,)
        True for rows with a weight.
    bound : callable
        Upper bound of all distances; see `RowDistances`.
    first, second : ndarray of shape (n,)
        Places of the nearest and second nearest medoid of each row.
    r, s : ndarray of shape (n,)
        Their distances.
    """

    medoids: ndarray
    distances: ndarray
    changed: ndarray
    counted: ndarray
    bound: Callable[[ndarray], float]

    def __post_init__(self) -> None:
        order = np.argsort(self.distances, axis=0, kind="stable")
        self.first, self.r = order[0], self.distances.min(axis=0)
        if len(self.medoids) > 1:
            self.second = order[1]
            self.s = np.take_along_axis(self.distances, order[1:2], axis=0)[0]
        else:
            # Farther than any row can be from another medoid, so that s cancels in the gains of
            # exchanges: a single medoid then needs no case of its own.
            self.second = np.full_like(self.first, -1)
            self.s = np.full_like(self.r, self.bound(self.r))

    def with_medoids(
        self, medoids: ndarray, distances: ndarray, previous: ndarray
    ) -> "MedoidTable":
        """Return the table of other medoids, which counts the rows that change their cluster.

        previous: the cluster of each row before, by the new places; -1 if it no longer exists.
        """
        # Rows without weight cost nothing wherever they are, so their moves do not count.
        new = MedoidTable(medoids, distances, self.changed, self.counted, self.bound)
        k, moved = len(medoids), self.counted & (new.first != previous)
        left = np.bincount(previous[moved & (previous >= 0)], minlength=k)
        before = self.changed[:k] if len(self.changed) >= k else np.append(self.changed, 0)
        new.changed = before + left + np.bincount(new.first[moved], minlength=k)
        return new


class InMemorySearch:
    """The moves of the search; see `SearchMoves`.

    Parameters
    ----------
    distances : RowDistances
        The data.
    weights : ndarray of shape (n,), optional
        Weights of the rows.
    """

    def __init__(self, distances: RowDistances, weights: ndarray | None = None) -> None:
        # float64 also where the rows are float32: gains are small differences of large sums.
        self.distances = distances
        self.weights = np.ones(distances.n_rows) if weights is None else np.asarray(weights, float)

    @property
    def medoids(self) -> ndarray:
        """The medoids, (k,) rows."""
        return self.table.medoids

    @property
    def loss(self) -> float:
        """The sum of w r."""
        return float(self.weights @ self.table.r)

    def begin(self, medoids: ndarray) -> None:
        """Begin with these medoids; all rows count as new in their clusters."""
        distances = np.stack([self.distances.of_row(int(m)) for m in medoids])
        nothing, counted = np.zeros(len(medoids), int), self.weights > 0
        table = MedoidTable(np.array(medoids), distances, nothing, counted, self.distances.bound)
        nowhere = np.full(distances.shape[1], -1)
        self.table = table.with_medoids(table.medoids, distances, nowhere)

    def descend(self, rounds: int, slack: float) -> bool:
        """Examine each cluster in which more than the share `slack` of the rows has changed.

        Candidates are the rows nearest to the cluster's mean. The best exchange is made if it
        lowers the loss even when only rows of this cluster, and those to which it is second
        nearest, may use the candidate: the others can only lower the loss further. At most
        `rounds` rounds over all clusters.
        """
        # A cluster whose rows have hardly changed would give the same answer again, so it is
        # skipped until enough rows have joined or left it.
        before, any_swap = self.loss, True
        while any_swap and rounds > 0:
            any_swap, rounds = False, rounds - 1
            for j in range(len(self.medoids)):
                if self.table.changed[j] > slack * len(self._members(j)):
                    self.table.changed[j] = 0
                    near = self._candidates(j, NEAR)
                    rows = np.flatnonzero((self.table.first == j) | (self.table.second == j))
                    any_swap |= len(near) > 1 and self._exchange_best(near, rows)
        return self.loss < before

    def exchange(self, seed: int, layer: int) -> bool:
        """Exchange medoids with drawn rows, as long as one of these lowers the loss."""
        # Rows far from their medoids are drawn more often: there a new medoid gains the most.
        everywhere = np.arange(self.distances.n_rows)
        return self._exchange_all(self._draw(seed, layer, 0, everywhere, BATCH))

    def sweep(self, reach: int) -> bool:
        """Exchange medoids with the `reach` rows of each cluster nearest to its mean, and repeat.

        It ends when as many candidates in a row as there are do not lower the loss.
        """
        fell, idle = False, 0
        while True:
            # Exchanges move the means, so each round takes new candidates.
            near = [self._candidates(j, reach) for j in range(len(self.medoids))]
            candidates = np.concatenate(near)
            for at in range(0, len(candidates), BATCH):
                if idle >= len(candidates):
                    return fell
                batch = candidates[at : at + BATCH]
                success = self._exchange_all(batch)
                idle, fell = 0 if success else idle + len(batch), fell or success

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool:
        r"""Split clusters and remove as many medoids; keep the result if the loss is lower.

        Clusters are drawn by $2 \log e_j + g$, $e_j$ being their part of the loss (Gumbel's trick:
        the largest sums are draws in proportion to $e_j^2$).
        """
        before, loss, k = self.table, self.loss, len(self.medoids)
        # Only `changed` needs a copy: descents write into it, and every other array of a table is
        # replaced, never written.
        changed_before = before.changed.copy()
        errors = np.bincount(before.first, self.weights * before.r, minlength=k)
        noise = gumbel(seed, layer, "grow", k, torch.zeros(1, dtype=torch.long))[:, 0].numpy()
        with np.errstate(divide="ignore"):
            order = np.argsort(-(SPLIT_SHARPNESS * np.log(errors) + noise), kind="stable")
        for j in [j for j in order if errors[j] > 0][:n_moved]:
            self._split(int(j), seed, layer, n_draws)
        # Removals are judged after a descent, when the medoids have settled around the new ones.
        self.descend(1, slack)
        while len(self.medoids) > k:
            place, first = int(np.argmin(self._removal_costs())), self.table.first
            # Medoids behind the removed one move up by one place.
            previous = np.where(first == place, -1, first - (first > place))
            self.table.changed = np.delete(self.table.changed, place)
            distances = np.delete(self.table.distances, place, axis=0)
            medoids = np.delete(self.medoids, place)
            self.table = self.table.with_medoids(medoids, distances, previous)
        self.descend(1, slack)
        if self.loss < (1 - RELOCATION_GAIN) * loss:
            return True  # the kernels' search compares in the same way
        self.table, self.table.changed = before, changed_before
        return False

    def gains(self, candidates: ndarray, rows: ndarray | None = None) -> ndarray:
        r"""Return by how much each exchange lowers the loss, (m, k).

        With a candidate at the distance a of a row whose medoids are at r and s: the loss falls by
        $(r - a)^+$ whichever medoid goes, and a row of the one that goes costs
        $s - r - (s - \max(a, r))^+$ in addition. If `rows` are given, only they may use the
        candidate, and the gain is a lower bound.
        """
        rows = np.arange(self.distances.n_rows) if rows is None else rows
        table, w = self.table, self.weights[rows]
        r, s, first = table.r[rows], table.s[rows], table.first[rows]
        # The removal costs count every row, and only the gains are limited to `rows`: so the
        # difference is never above the true gain.
        costs, gains = self._removal_costs(), np.empty((len(candidates), len(self.medoids)))
        for c, x in enumerate(candidates):
            a = self.distances.of_row(int(x))[rows]
            saved = w @ np.maximum(r - a, 0)
            less = w * np.maximum(s - np.maximum(a, r), 0)
            gains[c] = saved + np.bincount(first, less, minlength=len(costs)) - costs
        return gains

    def _removal_costs(self) -> ndarray:
        """Return by how much the loss rises without each medoid, (k,)."""
        lost = self.weights * (self.table.s - self.table.r)
        return np.bincount(self.table.first, lost, minlength=len(self.medoids))

    def _exchange_all(self, candidates: ndarray) -> bool:
        """Make the best exchange with one of these rows again and again, while the loss falls."""
        fell = False
        while len(candidates) and self._exchange_best(candidates):
            fell = True
        return fell

    def _exchange_best(self, candidates: ndarray, rows: ndarray | None = None) -> bool:
        """Make the best exchange with one of these rows, if it lowers the loss; see `gains`."""
        gains = self.gains(candidates, rows)
        c, j = np.unravel_index(np.argmax(gains), gains.shape)
        before, loss = self.table, self.loss
        if gains[c, j] > EXCHANGE_GAIN * loss:
            self._swap(int(j), int(candidates[c]))
            if self.loss < loss:
                return True
            self.table = before  # the gain was rounding: without this the search might not end
        return False

    def _candidates(self, j: int, count: int) -> ndarray:
        """Return the rows of cluster j nearest to its mean; all of them if there are no means."""
        members = self._members(j)
        return self._middle_rows(members, count) if self.distances.has_means else members

    def _members(self, j: int) -> ndarray:
        """Return the rows of cluster j that have a weight; others are not candidates."""
        return np.flatnonzero((self.table.first == j) & self.table.counted)

    def _middle_rows(self, rows: ndarray, count: int) -> ndarray:
        """Return the rows nearest to their mean."""
        if len(rows) <= 2:
            return rows[:count]  # two rows are equally near: rounding must not order them
        distances = self.distances.to_mean(rows, self.weights[rows])
        return rows[np.argsort(distances, kind="stable")[:count]]

    def _draw(self, seed: int, layer: int, number: int, rows: ndarray, count: int) -> ndarray:
        r"""Draw rows without replacement by $\log w_i r_i + g$; those with r = 0 never.

        number: distinguishes several draws in one layer.
        """
        noise = gumbel(seed, layer, "drawn", number + 1, torch.from_numpy(rows))[number].numpy()
        # The top of Gumbel scores are draws without replacement in proportion to w r; log 0 is
        # minus infinity, which is never drawn.
        with np.errstate(divide="ignore"):
            scores = np.log(self.weights[rows] * self.table.r[rows]) + noise
        order = np.argsort(-scores, kind="stable")[:count]
        return rows[order[scores[order] > -np.inf]]

    def _split(self, j: int, seed: int, layer: int, n_draws: int) -> None:
        """Split cluster j in two by the best of some draws, if that lowers the loss."""
        members, best_gain, best = self._members(j), 0.0, None
        r, w = self.table.r, self.weights
        for number in range(n_draws):
            drawn = self._draw(seed, layer, number, members, 1)
            if len(drawn) == 0:
                return  # every row of the cluster lies on its medoid
            near = self.distances.of_row(int(drawn[0]))[members] < r[members]
            if near.all() or not near.any():
                continue  # a half without rows has no middle
            halves = members[near], members[~near]
            middles = [int(self._middle_rows(half, 1)[0]) for half in halves]
            gain = sum(
                w[half] @ (r[half] - self.distances.of_row(x)[half])
                for x, half in zip(middles, halves, strict=True)
            )
            if gain > best_gain:
                best_gain, best = gain, middles
        if best is not None:
            new, remaining = best
            if remaining != self.medoids[j]:
                self._swap(j, remaining)
            distances = np.concatenate([self.table.distances, self.distances.of_row(new)[None]])
            medoids = np.append(self.medoids, new)
            self.table = self.table.with_medoids(medoids, distances, self.table.first)

    def _swap(self, place: int, x: int) -> None:
        """Replace the medoid at a place by row x."""
        medoids, distances = self.medoids.copy(), self.table.distances.copy()
        medoids[place], distances[place] = x, self.distances.of_row(x)
        self.table = self.table.with_medoids(medoids, distances, self.table.first)
