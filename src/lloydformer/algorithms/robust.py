"""Algorithms that weigh the points of a cluster: trimmed, robust, and randomised k-medoids.

alg:trim-kmeans, alg:rob-kmeans (with the center's index corrected to c^(t-1)) and alg:rnd-kmeds.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from lloydformer.algorithms.contract import draw_noise
from lloydformer.algorithms.lloyd import Lloyd, Spherical

# Shares of points are 1/m with m <= k centers that are equally near, so different shares, and
# squared distances of codes, are at least 1/k^2 apart: smaller differences are rounding.
_ROUNDING = 1e-9


def code_distances(assignments: Float[ndarray, "n k"]) -> Float[ndarray, "k n"]:
    """Return |y_i - e_j|^2: 0 for own points, 2 for those of other clusters, less if shared."""
    own = np.eye(assignments.shape[1])
    return ((assignments[None, :, :] - own[:, None, :]) ** 2).sum(axis=2)


def members(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """Return the mask of the points that are nearest to each cluster's code.

    These are its own points; all points if it has none; with averaged ties, those with the
    largest share in it.
    """
    distances = code_distances(assignments)
    return distances <= distances.min(axis=1, keepdims=True) + _ROUNDING


def largest_shares(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """Return the mask of the points with the largest share in each cluster; all if it is empty."""
    shares = assignments.T
    return shares >= shares.max(axis=1, keepdims=True) - _ROUNDING


@dataclass(frozen=True)
class Trimmed(Lloyd):
    """Lloyd's algorithm in which the farthest points of a cluster have no weight.

    The ceil(keep * m) nearest of its m points stay, and points tied with the last of them.
    inverse_temperature: the text's gamma, one for all clusters, in place of `keep`; norm-max then
    keeps the points to which sparsemax of gamma times the scores gives weight. lifted: as in
    `Robust`.
    """

    keep: float = 0.95
    inverse_temperature: float | None = None
    lifted: bool = False

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        scores, radii = self.decision(points, centers, assignments, iteration)
        kept = scores >= radii[:, None]
        return kept / kept.sum(axis=1, keepdims=True)

    def decision(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> tuple[Float[ndarray, "k n"], Float[ndarray, " k"]]:
        """Return scores, minus infinity for other clusters' points, and each cluster's cut."""
        scores = self.similarity(points, centers).T
        own = largest_shares(assignments) if self.lifted else members(assignments)
        scores[~own] = -np.inf  # instead of a separation: never kept
        cuts = []
        for row in scores:
            kept = np.sort(row[row > -np.inf])[::-1]
            if self.inverse_temperature is not None:
                cuts.append(kept[sparsemax(self.inverse_temperature * kept) > 0].min())
                continue
            # 0.07 * 100 is above 7 by rounding, and must not keep an eighth point
            cuts.append(kept[ceil(self.keep * len(kept) - _ROUNDING) - 1])
        return scores, np.array(cuts)


@dataclass(frozen=True)
class Robust(Lloyd):
    """Lloyd's algorithm in which points weigh less the farther they are from their center.

    lifted: for the circuit in the appendix's form, which differs if ties are averaged and a
    cluster is empty.
    """

    inverse_temperature: float = 0.01
    activation: str = "sparsemax"
    lifted: bool = False

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        normalise = {"sparsemax": sparsemax, "softmax": softmax}[self.activation]
        scores = self.inverse_temperature * self.similarity(points, centers).T
        own = largest_shares(assignments) if self.lifted else members(assignments)
        weights = np.zeros_like(scores)
        for j in range(len(scores)):
            weights[j, own[j]] = normalise(scores[j, own[j]])
        return weights


def softmax(scores: Float[ndarray, " m"]) -> Float[ndarray, " m"]:
    """Return the soft-max of the scores."""
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def sparsemax(scores: Float[ndarray, " m"]) -> Float[ndarray, " m"]:
    """Return sparsemax: its threshold by bisection, then exactly for the support found."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(100):  # more than the 53 bits of a float
        middle = (low + high) / 2
        if np.maximum(scores - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    # bisection has found which scores are positive; their threshold has a closed form
    support = scores > low
    threshold = (scores[support].sum() - 1) / support.sum()
    return np.maximum(scores - threshold, 0)


@dataclass(frozen=True)
class Medoids(Lloyd):
    r"""Each center moves to a randomly drawn point.

    The probability is $\propto \exp(-\lVert x_i - c_j \rVert^2 - 2\delta\, 1[a_i \ne j])$. The
    point drawn has the largest log-probability plus Gumbel noise. lifted: as in `Robust`.
    """

    separation: float = 100.0
    seed: int = 0
    lifted: bool = False

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        scores, _ = self.decision(points, centers, assignments, iteration)
        return np.eye(len(points))[scores.argmax(axis=1)]

    def decision(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> tuple[Float[ndarray, "k n"], Float[ndarray, " k"]]:
        """Return the scores with noise, and the largest one for each center."""
        n, k = assignments.shape
        noise = draw_noise(self.seed, iteration, "decoder_cross", k, np.arange(n))
        # by 2 delta in other clusters, less where a point is shared
        apart = 2 * (1 - assignments.T) if self.lifted else code_distances(assignments)
        scores = self.similarity(points, centers).T - self.separation * apart + noise
        return scores, scores.max(axis=1)


# The stars of tab:comp-alg: the same weights by dot products of unit vectors, and centers that move
# to directions. `Spherical` comes first, so that similarity and place are those of the sphere.


@dataclass(frozen=True)
class SphericalTrimmed(Spherical, Trimmed):
    """Trimmed k-means on the sphere: the points with the smallest dot products have no weight."""


@dataclass(frozen=True)
class SphericalRobust(Spherical, Robust):
    """Robust k-means on the sphere: points weigh by gamma times their dot product."""


@dataclass(frozen=True)
class SphericalMedoids(Spherical, Medoids):
    """Randomised k-medoids on the sphere: points are drawn by the exponential of dot products."""
