"""Relocating k-means: clusters with much error are split, centers of little use vanish."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import squared_distances
from lloydformer.numerics.noise import gumbel

SHARPNESS = 2.0
"""Clusters are drawn with probability proportional to their error to this power."""
CANDIDATES = 64
"""Centers that may vanish: those of the least utility."""
GAIN = 1e-6
"""A relocation is kept if it lowers the objective by this fraction."""
TIE = 1e-9
"""Costs that differ by less than this fraction of the objective are equal; so are gains."""
STILL = 1e-12
"""Centers whose means lower the objective by no more than this fraction are settled."""


@dataclass(frozen=True)
class Course:
    """The centers kept after every layer, the initial ones first, and their objectives.

    The layers of a relocation look ahead: while they go on, what was kept before stays.
    """

    centers: Float[ndarray, "s k d"]
    objective: Float[ndarray, " s"]
    kept: tuple[bool, ...]
    """Of each relocation: was it better than what there was?"""


@dataclass(frozen=True)
class Relocating:
    """Lloyd's iterations and, again and again, a relocation of `n_moved` centers.

    A relocation splits some clusters in two, takes a step of Lloyd's, lets as many centers vanish
    one after the other, and takes another step: 3 + n_moved layers. It is kept if the objective
    is lower than before. After `patience` relocations in a row that are not, Lloyd's iterations
    go on alone. `rest` of them come before each relocation, fewer if the centers have settled;
    None: as many as it takes. A cluster without mass keeps its center.
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
    ) -> Course:
        """So many layers, or fewer if nothing moves any more.

        tolerance: the squared shift of all centers at which they count as settled.
        """
        problem = Problem(points, np.ones(len(points)) if weights is None else weights)
        course, settled = [np.asarray(centers, float)], False
        kept: list[bool] = []
        n_moved = min(self.n_moved, len(centers))
        depth = 3 + n_moved
        while True:
            left = n_layers + 1 - len(course)
            patient = True in kept[-self.patience :] or len(kept) < self.patience
            patient = patient and self.patience > 0 and len(centers) > 1
            short = self.rest is not None and patient and left >= self.rest + depth
            for _ in range(0 if settled else self.rest or 0 if short else left):
                moved, after = problem.lloyd(course[-1])
                before, shift = problem.objective(course[-1]), ((moved - course[-1]) ** 2).sum()
                settled = bool(shift <= tolerance or before - after <= STILL * before)
                course.append(moved)
                if settled:
                    break
            if not patient or n_layers + 1 - len(course) < depth:
                break
            found, objective = self._relocated(problem, course[-1], len(course) - 1, n_moved)
            kept.append(bool(objective < (1 - GAIN) * problem.objective(course[-1])))
            course += [course[-1]] * (2 + n_moved) + [found if kept[-1] else course[-1]]
            settled = settled and not kept[-1]
        return Course(
            np.stack(course), np.array([problem.objective(c) for c in course]), tuple(kept)
        )

    def _relocated(
        self, problem: "Problem", centers: ndarray, layer: int, n_moved: int
    ) -> tuple[ndarray, float]:
        """Other centers, and the objective of the partition that they are the means of."""
        k, tie = len(centers), TIE * problem.objective(centers)
        centers, _ = problem.lloyd(self.grow(problem, centers, layer, n_moved))
        while len(centers) > k:
            centers = problem.prune(centers, tie)
        return problem.lloyd(centers)

    def grow(self, problem: "Problem", centers: ndarray, layer: int, n_moved: int) -> ndarray:
        r"""The means, and those of two halves of clusters that are drawn by error.

        Scores $2\log e_j + g$; of the best draw of each, the half next to the point drawn comes
        last and the other half takes the cluster's place.
        """
        errors = problem.errors(centers)
        noise = gumbel(self.seed, layer, "grow", len(centers), torch.zeros(1, dtype=torch.long))
        with np.errstate(divide="ignore"):
            scores = SHARPNESS * np.log(errors) + noise[:, 0].numpy()
        means, more = problem.lloyd(centers)[0], []
        for b in np.argsort(-scores, kind="stable")[:n_moved]:
            gain, near, rest = self.halves(problem, centers, int(b), layer)
            if gain > 0:
                means[b] = rest
                more.append(near)
        return np.concatenate([means, *(m[None] for m in more)])

    def halves(
        self, problem: "Problem", centers: ndarray, b: int, layer: int
    ) -> tuple[float, ndarray, ndarray]:
        r"""The best of some splits of cluster b: its gain, the half near to the point, the rest.

        A point is drawn by $\log w_i r_i + g$, and takes the points that are nearer to it than to
        the center. The objective falls by $n_1 n_2 / (n_1 + n_2)\, |m_1 - m_2|^2$. Points of
        either half of a split gain the same: the first of equals counts.
        """
        labels, _, r, _ = problem.two_nearest(centers)
        own = np.flatnonzero((labels == b) & (problem.weights > 0))
        x, w, best = problem.points[own], problem.weights[own], (0.0, centers[b], centers[b])
        noise = gumbel(self.seed, layer, "drawn", self.n_draws, torch.from_numpy(own)).numpy()
        for g in noise if len(own) else []:
            with np.errstate(divide="ignore"):
                drawn = x[np.argmax(np.log(w * r[own]) + g)]
            near = ((x - drawn) ** 2).sum(axis=1) < r[own]
            if near.all() or not near.any():
                continue
            m1, m2 = (np.average(x[half], axis=0, weights=w[half]) for half in (near, ~near))
            n1, n2 = w[near].sum(), w[~near].sum()
            gain = float(n1 * n2 / (n1 + n2) * ((m1 - m2) ** 2).sum())
            best = (gain, m1, m2) if gain > (1 + TIE) * best[0] else best
        return best


@dataclass(frozen=True)
class Problem:
    """Weighted points, and what a layer does with them."""

    points: Float[ndarray, "n d"]
    weights: Float[ndarray, " n"]

    def two_nearest(self, centers: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray]:
        """Each point's nearest and second nearest center, and the squared distances r and s."""
        away = squared_distances(self.points, centers)
        order, rows = np.argsort(away, axis=1, kind="stable"), np.arange(len(away))
        first, second = order[:, 0], order[:, min(1, len(centers) - 1)]
        return first, second, away[rows, first], away[rows, second]

    def objective(self, centers: ndarray) -> float:
        return float(self.weights @ squared_distances(self.points, centers).min(axis=1))

    def errors(self, centers: ndarray) -> Float[ndarray, " k"]:
        labels, _, r, _ = self.two_nearest(centers)
        return np.bincount(labels, self.weights * r, minlength=len(centers))

    def lloyd(self, centers: ndarray) -> tuple[ndarray, float]:
        """The means of the clusters, and the objective of this partition."""
        return self.means(self.two_nearest(centers)[0], centers)

    def means(self, labels: ndarray, centers: ndarray) -> tuple[ndarray, float]:
        means = centers.copy()
        for j in range(len(centers)):
            own = labels == j
            if self.weights[own].sum() > 0:
                means[j] = np.average(self.points[own], axis=0, weights=self.weights[own])
        return means, float(self.weights @ ((self.points - means[labels]) ** 2).sum(axis=1))

    def prune(self, centers: ndarray, tie: float = 0.0) -> ndarray:
        """The means without the center that costs the least; its points go to the second nearest.

        Of those with the least utility, $u_j = \\sum_i w_i (s_i - r_i)$ over its points. Two that
        are each other's second nearest cost the same: the first of equals vanishes.
        """
        labels, second, r, s = self.two_nearest(centers)
        utility = np.bincount(labels, self.weights * (s - r), minlength=len(centers))
        candidates = np.sort(np.argsort(utility, kind="stable")[:CANDIDATES])
        without = [self.means(np.where(labels == a, second, labels), centers) for a in candidates]
        objectives = np.array([objective for _, objective in without])
        a = int(np.argmax(objectives <= objectives.min() + tie))
        return np.delete(without[a][0], candidates[a], axis=0)
