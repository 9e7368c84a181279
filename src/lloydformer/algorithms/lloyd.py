"""Lloyd's algorithm (alg:lloyds), and what becomes of empty clusters in its circuits."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import mean, share, squared_distances


@dataclass(frozen=True)
class Lloyd:
    """Assign each point to its nearest center, move each center to the mean of its points.

    The algorithm does not say what becomes of a point that is equally near to two centers, nor
    of a center without points. ties="first" gives the point to the first of them; "average"
    splits it, and then a center counts only the points that belong to it the most. A center
    without points moves to the mean of all points, as the circuits do.
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
    """The same, but a center without points moves to the mean of its nearest kin.

    Those are the points of the clusters whose number shares the most binary digits with its
    own: what comes of writing clusters as binary codes.
    """

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        k = assignments.shape[1]
        differing = np.array([[(i ^ j).bit_count() for j in range(k)] for i in range(k)])
        away = differing[:, assignments.argmax(axis=1)]  # (k, n)
        members = away == away.min(axis=1, keepdims=True)
        return members / members.sum(axis=1, keepdims=True)
