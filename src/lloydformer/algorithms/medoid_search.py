"""The search for medoids: exchanges that lower the loss, and relocations that are kept if better.

The loss is the sum of w_i r_i, r_i being the distance of row i to its nearest medoid. No move
raises it. Memory: k distances a row here; the kernels keep two.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray

from lloydformer.algorithms.medoid_distances import RowDistances
from lloydformer.numerics.noise import gumbel

BATCH = 32
"""Candidates that are compared at once; the best of them is exchanged."""
NEAR = 16
"""Candidates of a cluster: its rows that are nearest to its mean."""
LEAST = 1e-9
"""An exchange is made if it lowers the loss by more than this fraction."""
KEPT = 1e-6
"""The same for a relocation."""


@dataclass
class MedoidTable:
    """Medoids, and for every row its two nearest ones; on ties the lower place is nearer."""

    medoids: ndarray
    """Rows, (k,)."""
    away: ndarray
    """Distances of the medoids to all rows, (k, n)."""
    changed: ndarray
    """Rows of each cluster that came or went since it was last looked at, (k,)."""
    counted: ndarray
    """Has the row a weight? (n,)"""
    bound: Callable[[ndarray], float]
    """Upper bound of all distances; see `RowDistances`."""

    def __post_init__(self) -> None:
        order = np.argsort(self.away, axis=0, kind="stable")
        self.first, self.r = order[0], self.away.min(axis=0)
        if len(self.medoids) > 1:
            self.second = order[1]
            self.s = np.take_along_axis(self.away, order[1:2], axis=0)[0]
        else:  # farther than any row can be from another medoid; it cancels
            self.second, self.s = (
                np.full_like(self.first, -1),
                np.full_like(self.r, self.bound(self.r)),
            )

    def replaced(self, medoids: ndarray, away: ndarray, before: ndarray) -> "MedoidTable":
        """Other medoids. before: the places that rows had, by the new numbers; -1 if it is gone."""
        new = MedoidTable(medoids, away, self.changed, self.counted, self.bound)
        moved = self.counted & (new.first != before)
        k = len(medoids)
        left = np.bincount(before[moved & (before >= 0)], minlength=k)
        kept = self.changed[:k] if len(self.changed) >= k else np.append(self.changed, 0)
        new.changed = kept + left + np.bincount(new.first[moved], minlength=k)
        return new


class MedoidSearch:
    """The moves of the search.

    Parameters
    ----------
    distances : RowDistances
        The data.
    weights : ndarray of shape (n,), optional
        Weights of the rows.
    """

    def __init__(self, distances: RowDistances, weights: ndarray | None = None) -> None:
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
        """Begin with these medoids."""
        away = np.stack([self.distances.of_row(int(m)) for m in medoids])
        table = MedoidTable(
            np.array(medoids), away, np.zeros(len(medoids), int), self.weights > 0,
            self.distances.bound,
        )  # fmt: skip
        self.table = table.replaced(table.medoids, away, np.full(away.shape[1], -1))

    def descend(self, rounds: int, slack: float) -> bool:
        """Look at each cluster of whose rows more than a share of `slack` has changed.

        The best exchange with one of the rows nearest to its mean is made, if the rows of this
        cluster and those to which it is second nearest alone say that it lowers the loss: all
        others can only lower it further. At most so many rounds over all clusters.
        """
        before, any_swap = self.loss, True
        while any_swap and rounds > 0:
            any_swap, rounds = False, rounds - 1
            for j in range(len(self.medoids)):
                if self.table.changed[j] > slack * len(self._own(j)):
                    any_swap |= self._improve(j)
        return self.loss < before

    def exchange(self, seed: int, layer: int) -> bool:
        """Exchange medoids with drawn rows, as long as one of these lowers the loss."""
        return self._exchange(self.drawn(seed, layer))

    def drawn(self, seed: int, layer: int, count: int = BATCH) -> ndarray:
        """Return rows drawn in proportion to weight times distance to their medoid."""
        return self._drawn(seed, layer, 0, np.arange(self.distances.n_rows), count)

    def exchange_once(self, candidates: ndarray) -> bool:
        """Make the best exchange with one of these rows, if it lowers the loss."""
        return self._exchange(candidates, np.arange(self.distances.n_rows))

    def sweep(self, reach: int) -> bool:
        """Exchange medoids with the `reach` rows of each cluster nearest to its mean, and repeat.

        It ends when as many candidates in a row as there are do not lower the loss.
        """
        fell, idle = False, 0
        while True:
            near = [self._nearest(j, reach) for j in range(len(self.medoids))]
            candidates = np.concatenate(near)
            for at in range(0, len(candidates), BATCH):
                if idle >= len(candidates):
                    return fell
                batch = candidates[at : at + BATCH]
                found = self._exchange(batch)
                idle, fell = 0 if found else idle + len(batch), fell or found

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool:
        r"""Split clusters and remove as many medoids; keep the result if the loss is lower.

        Clusters are drawn by $2 \log e_j + g$, $e_j$ being their part of the loss.
        """
        before, loss, k = self.table, self.loss, len(self.medoids)
        before_changed = before.changed.copy()
        errors = np.bincount(before.first, self.weights * before.r, minlength=k)
        noise = gumbel(seed, layer, "grow", k, torch.zeros(1, dtype=torch.long))[:, 0].numpy()
        with np.errstate(divide="ignore"):
            order = np.argsort(-(2 * np.log(errors) + noise), kind="stable")
        for b in [b for b in order if errors[b] > 0][:n_moved]:
            self._split(int(b), seed, layer, n_draws)
        self.descend(1, slack)
        while len(self.medoids) > k:
            self._remove(int(np.argmin(self._removal())))
        self.descend(1, slack)
        if self.loss < (1 - KEPT) * loss:
            return True
        self.table, self.table.changed = before, before_changed
        return False

    def gains(self, candidates: ndarray, rows: ndarray | None = None) -> ndarray:
        r"""Return by how much each exchange lowers the loss, (m, k), counted over some rows.

        With a candidate at the distance a of a row whose medoids are at r and s: the loss falls by
        $(r - a)^+$ whichever medoid goes, and a row of the one that goes costs
        $s - r - (s - \max(a, r))^+$ in addition.
        """
        at = np.arange(self.distances.n_rows) if rows is None else rows
        r, s, first, w = (
            v[at] for v in (self.table.r, self.table.s, self.table.first, self.weights)
        )
        removal, found = self._removal(), np.empty((len(candidates), len(self.medoids)))
        for c, x in enumerate(candidates):
            a = self.distances.of_row(int(x))[at]
            saved = w @ np.maximum(r - a, 0)
            less = w * np.maximum(s - np.maximum(a, r), 0)
            found[c] = saved + np.bincount(first, less, minlength=len(removal)) - removal
        return found

    def _removal(self) -> ndarray:
        """By how much the loss rises without each medoid, (k,)."""
        lost = self.weights * (self.table.s - self.table.r)
        return np.bincount(self.table.first, lost, minlength=len(self.medoids))

    def _exchange(self, candidates: ndarray, rows: ndarray | None = None) -> bool:
        fell = False
        while len(candidates):
            gains = self.gains(candidates, rows)
            c, j = np.unravel_index(np.argmax(gains), gains.shape)
            enough = gains[c, j] > LEAST * self.loss
            if not (enough and self._swap_if_better(int(j), int(candidates[c]))):
                return fell
            fell = True
            if rows is not None:
                return fell
        return fell

    def _swap_if_better(self, place: int, x: int) -> bool:
        """Swap, or leave the table as it is if rounding made the gain: so the search ends."""
        before, loss = self.table, self.loss
        self._swap(place, x)
        if self.loss < loss:
            return True
        self.table = before
        return False

    def _improve(self, j: int) -> bool:
        self.table.changed[j] = 0
        near = self._nearest(j, NEAR)
        rows = np.flatnonzero((self.table.first == j) | (self.table.second == j))
        return len(near) > 1 and self._exchange(near, rows)

    def _nearest(self, j: int, count: int) -> ndarray:
        own = self._own(j)
        return self._middles(own, count) if self.distances.has_means else own

    def _own(self, j: int) -> ndarray:
        """Rows with weight of cluster j; others are no candidates."""
        return np.flatnonzero((self.table.first == j) & self.table.counted)

    def _middles(self, rows: ndarray, count: int) -> ndarray:
        """The rows nearest to their mean. Two are equally near: rounding must not order them."""
        if len(rows) <= 2:
            return rows[:count]
        away = self.distances.to_mean(rows, self.weights[rows])
        return rows[np.argsort(away, kind="stable")[:count]]

    def _drawn(self, seed: int, layer: int, number: int, rows: ndarray, count: int) -> ndarray:
        r"""Rows drawn without replacement by $\log w_i r_i + g$; those with r = 0 never."""
        noise = gumbel(seed, layer, "drawn", number + 1, torch.from_numpy(rows))[number].numpy()
        with np.errstate(divide="ignore"):
            scores = np.log(self.weights[rows] * self.table.r[rows]) + noise
        order = np.argsort(-scores, kind="stable")[:count]
        return rows[order[scores[order] > -np.inf]]

    def _split(self, b: int, seed: int, layer: int, n_draws: int) -> None:
        """Split cluster b in two by the best of some draws, if that lowers the loss."""
        own, best = self._own(b), (0.0, -1, -1)
        r, w = self.table.r, self.weights
        for h in range(n_draws):
            drawn = self._drawn(seed, layer, h, own, 1)
            if len(drawn) == 0:
                return
            near = self.distances.of_row(int(drawn[0]))[own] < r[own]
            if near.all() or not near.any():
                continue
            halves = own[near], own[~near]
            middles = [int(self._middles(half, 1)[0]) for half in halves]
            gain = sum(
                w[half] @ (r[half] - self.distances.of_row(x)[half])
                for x, half in zip(middles, halves, strict=True)
            )
            best = (gain, *middles) if gain > best[0] else best
        _, added, kept = best
        if added >= 0:
            if kept != self.medoids[b]:
                self._swap(b, kept)
            self._add(added)

    def _swap(self, place: int, x: int) -> None:
        medoids, away = self.medoids.copy(), self.table.away.copy()
        medoids[place], away[place] = x, self.distances.of_row(x)
        self.table = self.table.replaced(medoids, away, self.table.first)

    def _add(self, x: int) -> None:
        away = np.concatenate([self.table.away, self.distances.of_row(x)[None]])
        self.table = self.table.replaced(np.append(self.medoids, x), away, self.table.first)

    def _remove(self, place: int) -> None:
        """Places behind it move up."""
        first = self.table.first
        before = np.where(first == place, -1, first - (first > place))
        self.table.changed = np.delete(self.table.changed, place)
        medoids, away = np.delete(self.medoids, place), np.delete(self.table.away, place, axis=0)
        self.table = self.table.replaced(medoids, away, before)
