"""Lloyd's algorithm (alg:lloyds), spherical k-means (alg:lloyds-sphere), soft k-means."""

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

    def similarity(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        """Return how near points are to centers, larger is nearer."""
        return -squared_distances(points, centers)

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        near = self.similarity(points, centers)
        # compared exactly: comparisons with other results must allow for ties that rounding decides
        return share(near == near.max(axis=1, keepdims=True), self.ties)

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        # the largest share is 1 if the center has a point of its own; without points all shares are
        # 0, and all points are members
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
        n_different = np.array([[(i ^ j).bit_count() for j in range(k)] for i in range(k)])
        different = n_different[:, assignments.argmax(axis=1)]  # (k, n)
        members = different == different.min(axis=1, keepdims=True)
        return members / members.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Spherical(Lloyd):
    """Assign by the largest dot product, move each center to the direction of its points' sum.

    The new center of a cluster whose points sum to zero is 0/0, not a number. The initial centers
    need not be unit vectors.
    """

    def similarity(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        return points @ centers.T

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        sums = mean(points, weights)  # in the direction of the sum
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


@dataclass(frozen=True)
class Soft:
    r"""Soft k-means (alg:soft-kmeans): $w_{ij} \propto \exp(-\gamma \lVert x_i - c_j \rVert^2)$.

    A center far from all points has weights that are too small for a float. Their ratios are not:
    `weigh` computes them from the logarithms.
    """

    inverse_temperature: float = 1.0

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        return np.exp(self._logarithms(points, centers))

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        logs = self._logarithms(points, centers).T
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def similarity(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        """Return how near points are to centers, larger is nearer."""
        return -squared_distances(points, centers)

    def _logarithms(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        """Return the logarithm of each point's weight for each center."""
        exponents = self.inverse_temperature * self.similarity(points, centers)
        exponents -= exponents.max(axis=1, keepdims=True)  # the sum of exponentials is 1 to k
        logs = exponents - np.log(np.exp(exponents).sum(axis=1, keepdims=True))
        # A finite limit: differences of logarithms would be NaN if both were infinite. For a center
        # so far from all points, all of them weigh the same.
        return np.maximum(logs, -1e300)

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return mean(points, weights)


@dataclass(frozen=True)
class SphericalSoft(Soft):
    r"""Soft k-means on the sphere: $w_{ij} \propto \exp(\gamma \langle x_i, c_j \rangle)$.

    A center moves to the direction of its weighted sum. A star of tab:comp-alg.
    """

    def similarity(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        return points @ centers.T

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return Spherical().place(points, weights)
