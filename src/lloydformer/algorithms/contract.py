"""The protocol of the plain algorithms: assign points, weigh them, place centers."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from lloydformer.numerics.noise import gumbel


@runtime_checkable
class Algorithm(Protocol):
    """One iteration of a clustering algorithm, in three steps."""

    def assign(self, points: ndarray, centers: ndarray) -> ndarray:
        """Return the assignment of each point to the centers, (n, k); rows sum to 1."""
        ...

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> ndarray:
        """Return the weight of each point for each new center, (k, n); rows sum to 1."""
        ...

    def place(self, points: ndarray, weights: ndarray) -> ndarray:
        """Return the new centers, (k, d)."""
        ...


@dataclass(frozen=True)
class History:
    """The run of an algorithm: centers before each iteration and after the last, assignments."""

    centers: Float[ndarray, "s k d"]
    assignments: Float[ndarray, "t n k"]

    @property
    def labels(self) -> ndarray:
        """The cluster of each point in each iteration, (t, n)."""
        return self.assignments.argmax(axis=-1)


def run(algorithm: Algorithm, points: ndarray, centers: ndarray, n_iterations: int) -> History:
    """Run the iterations in float64 and return their history."""
    points, centers = np.asarray(points, float), np.asarray(centers, float)
    all_centers, all_assignments = [centers], []
    for iteration in range(n_iterations):
        assignments = algorithm.assign(points, centers)
        weights = algorithm.weigh(points, centers, assignments, iteration)
        centers = algorithm.place(points, weights)
        all_centers.append(centers)
        all_assignments.append(assignments)
    return History(np.stack(all_centers), np.stack(all_assignments))


def squared_distances(
    points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"]
) -> Float[ndarray, "n k"]:
    """Return all |x_i - c_j|^2, computed by differences."""
    # as the circuits do: the expansion |x|^2 - 2 xc + |c|^2 is not 0 for equal rows
    return ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def draw_noise(
    seed: int, layer: int, head: str, n_clusters: int, rows: Int[ndarray, " n"]
) -> Float[ndarray, "k n"]:
    """Return the Gumbel noise of these rows, the same that circuits, plans and kernels draw."""
    return gumbel(seed, layer, head, n_clusters, torch.from_numpy(rows)).numpy()


def draw_cluster_noise(seed: int, layer: int, head: str, n_clusters: int) -> Float[ndarray, " k"]:
    """Return the Gumbel noise of clusters: that of row 0."""
    return draw_noise(seed, layer, head, n_clusters, np.zeros(1, np.int64))[:, 0]


def share(best: ndarray, ties: str) -> Float[ndarray, "n k"]:
    """Return assignments from the mask of best centers (n, k): the first one, or all evenly."""
    if ties == "first":  # argmax returns the first of equals
        return np.eye(best.shape[1])[best.argmax(axis=1)]
    return best / best.sum(axis=1, keepdims=True)


def mean(points: Float[ndarray, "n d"], weights: Float[ndarray, "k n"]) -> Float[ndarray, "k d"]:
    """Return the weighted means of the points, by weights whose rows sum to 1."""
    # relative to a point: weights sum to 1 + 1e-16, which would shift means of data far from zero
    origin = points[0]
    return np.stack([origin + (w[:, None] * (points - origin)).sum(axis=0) for w in weights])
