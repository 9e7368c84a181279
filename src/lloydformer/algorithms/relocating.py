"""Relocating k-means: split clusters with a large error, remove centers of little use.

docs/relocating.md describes the algorithm and how it was found.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import draw_cluster_noise, draw_noise, squared_distances
from lloydformer.numerics.search_constants import (
    RELOCATION_GAIN,
    REMOVAL_CANDIDATES,
    SETTLED,
    SPLIT_SHARPNESS,
    TIE,
)


@dataclass(frozen=True)
class RelocatingHistory:
    """The centers after every layer, the initial ones first, and their objectives.

    During the layers of a relocation the centers do not change.

    Attributes
    ----------
    centers : ndarray of shape (s, k, d)
        The centers.
    objective : ndarray of shape (s,)
        Their objectives.
    kept : tuple of bool
        For each relocation, whether it was kept.
    """

    centers: Float[ndarray, "s k d"]
    objective: Float[ndarray, " s"]
    kept: tuple[bool, ...]


@dataclass(frozen=True)
class WeightedPoints:
    """Weighted points, and the steps of the algorithm on them.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        The points.
    weights : ndarray of shape (n,)
        Their weights, 0 or more.
    """

    points: Float[ndarray, "n d"]
    weights: Float[ndarray, " n"]

    def two_nearest(self, centers: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray]:
        """Return each point's two nearest centers and their squared distances r and s.

        If there is a single center, it is both.
        """
        distances = squared_distances(self.points, centers)
        order, rows = np.argsort(distances, axis=1, kind="stable"), np.arange(len(distances))
        first, second = order[:, 0], order[:, min(1, len(centers) - 1)]
        return first, second, distances[rows, first], distances[rows, second]

    def objective(self, centers: ndarray) -> float:
        """Return the weighted k-means objective."""
        return float(self.weights @ squared_distances(self.points, centers).min(axis=1))

    def lloyd(self, centers: ndarray) -> tuple[ndarray, float]:
        """Return the means of the clusters, and the objective of this partition."""
        return self.means(self.two_nearest(centers)[0], centers)

    def means(self, labels: ndarray, centers: ndarray) -> tuple[ndarray, float]:
        """Return the means by label, and the objective; a cluster without mass keeps its center."""
        means = centers.copy()
        for j in range(len(centers)):
            own = labels == j
            if self.weights[own].sum() > 0:
                means[j] = np.average(self.points[own], axis=0, weights=self.weights[own])
        return means, float(self.weights @ ((self.points - means[labels]) ** 2).sum(axis=1))

    def prune(self, centers: ndarray, tie: float = 0.0) -> ndarray:
        r"""Return the means without the center whose removal costs the least.

        Its points go to the second nearest center. Candidates are the centers with the least
        utility, $u_j = \sum_i w_i (s_i - r_i)$ over its points. Two centers that are each other's
        second nearest cost the same; the first of them is removed.
        """
        labels, second, r, s = self.two_nearest(centers)
        utility = np.bincount(labels, self.weights * (s - r), minlength=len(centers))
        # in the order of the centers, so that ties go to the first center, not the least utility
        candidates = np.sort(np.argsort(utility, kind="stable")[:REMOVAL_CANDIDATES])
        without = [self.means(np.where(labels == a, second, labels), centers) for a in candidates]
        objectives = np.array([objective for _, objective in without])
        a = int(np.argmax(objectives <= objectives.min() + tie))
        return np.delete(without[a][0], candidates[a], axis=0)


@dataclass(frozen=True)
class Relocating:
    """Lloyd's iterations that alternate with relocations of `n_moved` centers.

    A relocation splits some clusters in two, does a step of Lloyd's algorithm, removes as many
    centers one after the other, and does another step: 3 + n_moved layers. It is kept if it lowers
    the objective by more than the fraction RELOCATION_GAIN. A cluster without mass keeps its
    center.

    Attributes
    ----------
    n_moved : int
        Largest number of clusters that a relocation splits; at most k are split.
    n_draws : int
        Number of splits of each cluster that are tried.
    patience : int
        After this many relocations in a row that were not kept, only Lloyd's iterations follow; 0
        is Lloyd's algorithm.
    rest : int or None
        Number of Lloyd's iterations before each relocation, fewer if the centers have settled;
        None runs until they have.
    seed : int
        Seed of the noise by which clusters and points are drawn.
    """

    n_moved: int = 5
    n_draws: int = 3
    patience: int = 5
    rest: int | None = None
    seed: int = 0

    def run(
        self,
        points: Float[ndarray, "n d"],
        centers: Float[ndarray, "k d"],
        n_layers: int,
        weights: Float[ndarray, " n"] | None = None,
        tolerance: float = 0.0,
    ) -> RelocatingHistory:
        """Run `n_layers` layers, or fewer if the centers have settled.

        tolerance: the squared shift of all centers up to which they count as settled.
        """
        problem = WeightedPoints(points, np.ones(len(points)) if weights is None else weights)
        history, kept, settled = [np.asarray(centers, float)], list[bool](), False
        n_moved = min(self.n_moved, len(centers))
        depth = 3 + n_moved
        while True:
            n_left = n_layers + 1 - len(history)
            patient = self.patience > 0 and len(centers) > 1
            patient &= len(kept) < self.patience or any(kept[-self.patience :])
            n_iterations = 0 if settled else n_left
            # iterate less if a relocation follows and fits into the layers that are left
            if self.rest is not None and patient and n_left >= self.rest + depth:
                n_iterations = min(n_iterations, self.rest)
            for _ in range(n_iterations):
                moved, after = problem.lloyd(history[-1])
                before, shift = problem.objective(history[-1]), ((moved - history[-1]) ** 2).sum()
                settled = bool(shift <= tolerance or before - after <= SETTLED * before)
                history.append(moved)
                if settled:
                    break
            if not patient or n_layers + 1 - len(history) < depth:
                break
            proposed, keep = self.propose(problem, history[-1], len(history) - 1)
            kept.append(keep)
            # the centers appear at once, after the layers that a circuit needs for them
            history += [history[-1]] * (depth - 1) + [proposed if keep else history[-1]]
            settled = settled and not keep  # new centers have to settle again
        objectives = np.array([problem.objective(c) for c in history])
        return RelocatingHistory(np.stack(history), objectives, tuple(kept))

    def relocate(
        self, points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"], layer: int
    ) -> Float[ndarray, "k d"]:
        """Relocate centers of unweighted points with the noise of this layer.

        Return the same centers if the relocation is not kept.
        """
        problem = WeightedPoints(points, np.ones(len(points)))
        proposed, keep = self.propose(problem, centers, layer)
        return proposed if keep else centers

    def propose(
        self, problem: WeightedPoints, centers: ndarray, layer: int
    ) -> tuple[ndarray, bool]:
        """Return relocated centers, and whether they are to be kept."""
        k, before = len(centers), problem.objective(centers)
        centers, _ = problem.lloyd(self.grow(problem, centers, layer, min(self.n_moved, k)))
        while len(centers) > k:
            centers = problem.prune(centers, TIE * before)
        # the objective of the partition whose means the new centers are
        proposed, after = problem.lloyd(centers)
        return proposed, after < (1 - RELOCATION_GAIN) * before

    def grow(self, problem: WeightedPoints, centers: ndarray, layer: int, n_moved: int) -> ndarray:
        r"""Return the means, with some clusters replaced by the means of two halves.

        The `n_moved` clusters with the largest scores $s \log e_j + g$ are split, with the error
        $e_j$ of a cluster, Gumbel noise g, and s = SPLIT_SHARPNESS. The best split of each appends
        the mean of the half near the drawn point, and the mean of the other half replaces the
        cluster's mean.
        """
        labels, _, r, _ = problem.two_nearest(centers)
        # the part of the objective of each cluster
        errors = np.bincount(labels, problem.weights * r, minlength=len(centers))
        noise = draw_cluster_noise(self.seed, layer, "grow", len(centers))
        with np.errstate(divide="ignore"):  # clusters without error are drawn last
            scores = SPLIT_SHARPNESS * np.log(errors) + noise
        means, more = problem.lloyd(centers)[0], []
        for b in np.argsort(-scores, kind="stable")[:n_moved]:
            gain, near, rest = self.halve(problem, centers, int(b), layer)
            if gain > 0:
                means[b] = rest
                more.append(near)
        return np.concatenate([means, *(m[None] for m in more)])

    def halve(
        self, problem: WeightedPoints, centers: ndarray, b: int, layer: int
    ) -> tuple[float, ndarray, ndarray]:
        r"""Return the best of several splits of cluster b: its gain and the means of both halves.

        A point is drawn by $\log w_i r_i + g$. The near half are the points that are nearer to it
        than to the center. The gain is $n_1 n_2 / (n_1 + n_2)\, |m_1 - m_2|^2$. Points of either
        half of a split give the same gain; the first of equal gains is used.
        """
        labels, _, r, _ = problem.two_nearest(centers)
        own = np.flatnonzero((labels == b) & (problem.weights > 0))
        x, w, best = problem.points[own], problem.weights[own], (0.0, centers[b], centers[b])
        noise = draw_noise(self.seed, layer, "drawn", self.n_draws, own)
        for g in noise if len(own) else []:
            with np.errstate(divide="ignore"):  # points at the center are drawn last
                drawn = x[np.argmax(np.log(w * r[own]) + g)]
            near = ((x - drawn) ** 2).sum(axis=1) < r[own]
            if near.all() or not near.any():
                continue  # not a split: its gain is 0
            m1, m2 = (np.average(x[half], axis=0, weights=w[half]) for half in (near, ~near))
            n1, n2 = w[near].sum(), w[~near].sum()
            gain = float(n1 * n2 / (n1 + n2) * ((m1 - m2) ** 2).sum())
            best = (gain, m1, m2) if gain > (1 + TIE) * best[0] else best
        return best
