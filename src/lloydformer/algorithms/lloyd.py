"""Lloyd's algorithm (alg:lloyds), with the empty clusters of its circuits."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import mean, share, squared_distances


@dataclass(frozen=True)
class Lloyd:
    """Assign each point to its nearest center, move each center to the mean of its points.

    The paper does not define the assignment of a point that is equally near to two centers, nor
    the update of a center without points. ties="first" assigns the point to the first center;
    "average" splits it, and then a center uses only the points with the largest share in it. A
    center without points moves to the mean of all points, as in the circuits.
    """

    ties: str = "first"

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        distances = squared_distances(points, centers)
        return share(distances == distances.min(axis=1, keepdims=True), self.ties)

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        shares = assignments.T
        members = shares == shares.max(axis=1, keepdims=True)
        return members / members.sum(axis=1, keepdims=True)

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return mean(points, weights)


@dataclass(frozen=True)
class LloydBinary(Lloyd):
    """Lloyd's algorithm with the empty clusters of binary codes.

    A center without points moves to the mean of the points whose cluster number has the most
    binary digits in common with its own.
    """

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        k = assignments.shape[1]
        differing = np.array([[(i ^ j).bit_count() for j in range(k)] for i in range(k)])
        away = differing[:, assignments.argmax(axis=1)]  # (k, n)
        members = away == away.min(axis=1, keepdims=True)
        return members / members.sum(axis=1, keepdims=True)
