"""The search for medoids by its definition: every loss is computed from the matrix of distances.

docs/medoids.md describes the moves. Here an exchange is judged by the loss after it, in O(n k), and
all n x n distances are stored; the search of the plans and the kernels compute gains by FasterPAM's
formula instead, and update what changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from lloydformer.algorithms.contract import draw_cluster_noise, draw_noise
from lloydformer.numerics.search_constants import EXCHANGE_GAIN, RELOCATION_GAIN, SPLIT_SHARPNESS


def pairwise_distances(rows: ndarray, others: ndarray, metric: str) -> ndarray:
    """Return the distances of all rows to all others, by the definition of the metric."""
    difference = rows[:, None, :] - others[None, :, :]
    if metric == "manhattan":
        return np.abs(difference).sum(axis=2)
    squares = (difference**2).sum(axis=2)
    if metric == "euclidean":
        return np.sqrt(squares)
    return squares / 2 if metric == "cosine" else squares  # |x - y|^2 / 2 is 1 - cos


@dataclass
class MedoidSearch:
    """A search in progress.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The rows; for the metric "cosine" unit vectors.
    metric : {"sqeuclidean", "euclidean", "manhattan", "cosine"}
        The distance.
    weights : ndarray of shape (n,), optional
        Weights of the rows. Rows without weight are not candidates.
    batch : int
        Candidates that are compared at once in exchanges and sweeps.
    n_near : int
        Candidates of each cluster in a descent.

    Attributes
    ----------
    medoids : ndarray of shape (k,)
        Rows. A medoid's place in this array is the number of its cluster.
    changed : ndarray of shape (k,)
        Number of rows that joined or left each cluster since it was last examined.
    """

    points: ndarray
    metric: str = "sqeuclidean"
    weights: ndarray | None = None
    batch: int = 32
    n_near: int = 16

    def __post_init__(self) -> None:
        self.w = np.ones(len(self.points)) if self.weights is None else self.weights
        self.distances = pairwise_distances(self.points, self.points, self.metric)
        self.medoids = np.zeros(0, int)

    @property
    def r(self) -> ndarray:
        """The distance of each row to its nearest medoid, (n,)."""
        return self.distances[self.medoids].min(axis=0)

    @property
    def labels(self) -> ndarray:
        """The cluster of each row, (n,); the first one on ties."""
        return self.distances[self.medoids].argmin(axis=0)

    @property
    def loss(self) -> float:
        """The sum of weight times distance."""
        return float(self.w @ self.r)

    def begin(self, medoids: ndarray) -> None:
        """Begin with these medoids; all rows count as new in their clusters."""
        self.medoids = np.array(medoids)
        self.changed = np.array([len(self.members(j)) for j in range(len(medoids))])

    def members(self, j: int) -> ndarray:
        """Return the rows of cluster j that have a weight."""
        return np.flatnonzero((self.labels == j) & (self.w > 0))

    def run(
        self, seed: int, quiet: int, patience: int, reach: int, first: int = 0
    ) -> Iterator[float]:
        """Run a whole search; yield the loss after each move.

        quiet: number of batches in a row without an exchange after which the exchanges end.
        patience: number of relocations in a row that were not kept after which they end.
        reach: candidates of each cluster in the last sweep.
        first: number of the first layer of the noise.
        """
        layer = first
        self.descend(100, 0.02)
        yield self.loss
        for move, most in ((self.exchange, quiet), (self.relocate, patience)):
            idle = 0
            while idle < most:
                idle = 0 if move(seed, layer) else idle + 1
                layer += 1
                yield self.loss
        self.sweep(reach)
        yield self.loss

    def descend(self, rounds: int, slack: float) -> bool:
        """Examine each cluster of whose rows more than a share of `slack` has changed.

        Its rows nearest to its mean are candidates, but only rows whose nearest or second nearest
        medoid is this one may use them.
        """
        before = self.loss
        for _ in range(rounds):
            any_swap = False
            for j in range(len(self.medoids)):
                if self.changed[j] > slack * len(self.members(j)):
                    self.changed[j] = 0  # examined, whether or not something is exchanged
                    near = self.nearest_to_mean(self.members(j), self.n_near)
                    order = np.argsort(self.distances[self.medoids], axis=0, kind="stable")
                    rows = np.flatnonzero((order[:2] == j).any(axis=0))
                    any_swap |= len(near) > 1 and self.exchange_once(near, rows)
            if not any_swap:
                break
        return self.loss < before

    def exchange(self, seed: int, layer: int) -> bool:
        """Exchange medoids with drawn rows, as long as one of these lowers the loss."""
        return self.exchange_all(self.draw(seed, layer, self.batch))

    def sweep(self, reach: int) -> bool:
        """Exchange medoids with the rows of each cluster nearest to its mean, and repeat.

        It ends when as many candidates in a row as there are do not lower the loss.
        """
        before, idle = self.loss, 0
        while True:
            clusters = range(len(self.medoids))
            near = [self.nearest_to_mean(self.members(j), reach) for j in clusters]
            candidates = np.concatenate(near)
            for start in range(0, len(candidates), self.batch):
                if idle >= len(candidates):
                    return self.loss < before
                some = candidates[start : start + self.batch]
                idle = 0 if self.exchange_all(some) else idle + len(some)

    def relocate(
        self, seed: int, layer: int, n_moved: int = 5, n_draws: int = 3, slack: float = 0.1
    ) -> bool:
        r"""Split clusters and remove as many medoids; return whether the result is kept.

        It is kept if it lowers the loss by more than the fraction RELOCATION_GAIN. Clusters are
        drawn by $s \log e_j + g$, with their part $e_j$ of the loss and s = SPLIT_SHARPNESS.
        """
        before, k = self.loss, len(self.medoids)
        medoids, changed = self.medoids, self.changed.copy()
        errors = np.bincount(self.labels, self.w * self.r, minlength=k)  # parts of the loss
        noise = draw_cluster_noise(seed, layer, "grow", k)
        with np.errstate(divide="ignore"):  # clusters without error are not split
            order = np.argsort(-(SPLIT_SHARPNESS * np.log(errors) + noise), kind="stable")
        for j in [int(j) for j in order if errors[j] > 0][:n_moved]:
            self.split(j, seed, layer, n_draws)
        self.descend(1, slack)
        while len(self.medoids) > k:
            without = [np.delete(self.medoids, j) for j in range(len(self.medoids))]
            losses = [self.w @ self.distances[rest].min(axis=0) for rest in without]
            j = int(np.argmin(losses))
            self.replace_medoids(without[j], removed=j)
        self.descend(1, slack)
        if self.loss < (1 - RELOCATION_GAIN) * before:
            return True
        # undo everything, including which clusters were examined
        self.medoids, self.changed = medoids, changed
        return False

    def split(self, j: int, seed: int, layer: int, n_draws: int) -> None:
        """Split cluster j by the best of some drawn rows, if that lowers the loss.

        One half is nearer to the drawn row than to the medoid; the new medoids are the rows
        nearest to the means of the halves.
        """
        members, r, best_gain, best = self.members(j), self.r, 0.0, list[int]()
        for number in range(n_draws):
            drawn = self.draw(seed, layer, 1, members, number)
            if len(drawn) == 0:
                return
            near = self.distances[drawn[0], members] < r[members]
            if near.all() or not near.any():
                continue  # not a split
            gain, middles = 0.0, []
            for half in (members[near], members[~near]):
                middles.append(int(self.nearest_to_mean(half, 1)[0]))
                gain += self.w[half] @ (r[half] - self.distances[middles[-1], half])
            if gain > best_gain:
                best_gain, best = gain, middles
        if best:
            new, remaining = best
            self.replace_medoid(j, remaining)
            self.replace_medoids(np.append(self.medoids, new))

    def gains(self, candidates: ndarray, rows: ndarray | None = None) -> ndarray:
        """Return the loss less that after each exchange, (m, k), if only `rows` may use the new."""
        allowed = np.zeros(len(self.points), bool)
        allowed[slice(None) if rows is None else rows] = True
        news = np.where(allowed, self.distances[candidates], np.inf)  # (m, n)
        losses = np.empty((len(candidates), len(self.medoids)))
        for j in range(len(self.medoids)):
            others = self.distances[np.delete(self.medoids, j)].min(axis=0, initial=np.inf)
            losses[:, j] = [self.w @ np.minimum(others, new) for new in news]
        return self.loss - losses

    def exchange_once(self, candidates: ndarray, rows: ndarray | None = None) -> bool:
        """Make the best exchange with one of these rows, if it lowers the loss; see `gains`."""
        if not len(candidates):  # every row that was drawn is a medoid already
            return False
        gains = self.gains(candidates, rows)
        c, j = np.unravel_index(np.argmax(gains), gains.shape)
        if gains[c, j] <= EXCHANGE_GAIN * self.loss:
            return False
        self.replace_medoid(int(j), int(candidates[c]))
        return True

    def exchange_all(self, candidates: ndarray) -> bool:
        """Make the best exchange with one of these rows again and again, while the loss falls."""
        before = self.loss
        while self.exchange_once(candidates):
            pass
        return self.loss < before

    def nearest_to_mean(self, rows: ndarray, count: int) -> ndarray:
        """Return the rows nearest to their mean; of two rows, which are equally near, the first."""
        if len(rows) <= 2:
            return rows[:count]
        mean = np.average(self.points[rows], axis=0, weights=self.w[rows])
        away = pairwise_distances(self.points[rows], mean[None], self.metric)[:, 0]
        return rows[np.argsort(away, kind="stable")[:count]]

    def draw(
        self, seed: int, layer: int, count: int, rows: ndarray | None = None, number: int = 0
    ) -> ndarray:
        r"""Draw rows without replacement by $\log w_i r_i + g$, but none with r = 0.

        number: distinguishes several draws in one layer.
        """
        rows = np.arange(len(self.points)) if rows is None else rows
        noise = draw_noise(seed, layer, "drawn", number + 1, rows)[number]
        with np.errstate(divide="ignore"):  # log 0 is -inf: such rows are not drawn
            scores = np.log(self.w[rows] * self.r[rows]) + noise
        order = np.argsort(-scores, kind="stable")[:count]
        return rows[order[scores[order] > -np.inf]]

    def replace_medoid(self, j: int, row: int) -> None:
        """Make a row the medoid of cluster j."""
        medoids = self.medoids.copy()
        medoids[j] = row
        self.replace_medoids(medoids)

    def replace_medoids(self, medoids: ndarray, removed: int | None = None) -> None:
        """Replace the medoids, and count the rows that change their cluster.

        removed: the place of a medoid that is not replaced; the places behind it move up.
        """
        before, changed = self.labels, self.changed
        if removed is not None:
            before = np.where(before == removed, -1, before - (before > removed))
            changed = np.delete(changed, removed)
        self.medoids, k = medoids, len(medoids)
        moved = (self.w > 0) & (self.labels != before)
        joined = np.bincount(self.labels[moved], minlength=k)
        left = np.bincount(before[moved & (before >= 0)], minlength=k)
        self.changed = np.pad(changed, (0, k - len(changed))) + joined + left
