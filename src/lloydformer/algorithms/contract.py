"""The protocol of the plain algorithms: assign points, weigh them, place centers."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray


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
    points, history, assigned = np.asarray(points, float), [np.asarray(centers, float)], []
    for t in range(n_iterations):
        assigned.append(algorithm.assign(points, history[-1]))
        weights = algorithm.weigh(points, history[-1], assigned[-1], t)
        history.append(algorithm.place(points, weights))
    return History(np.stack(history), np.stack(assigned))


def squared_distances(
    points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"]
) -> Float[ndarray, "n k"]:
    """Return all |x_i - c_j|^2, computed by differences."""
    return ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def share(best: ndarray, ties: str) -> Float[ndarray, "n k"]:
    """Return assignments from the mask of best centers (n, k): the first one, or all evenly."""
    if ties == "first":
        return np.eye(best.shape[1])[best.argmax(axis=1)]
    return best / best.sum(axis=1, keepdims=True)


def mean(points: Float[ndarray, "n d"], weights: Float[ndarray, "k n"]) -> Float[ndarray, "k d"]:
    """Return weighted means, relative to a point: exact though weights sum to 1 + 1e-16."""
    origin = points[0]
    return np.stack([origin + (w[:, None] * (points - origin)).sum(axis=0) for w in weights])
