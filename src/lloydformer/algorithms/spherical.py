"""Spherical k-means (alg:lloyds-sphere)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import mean, share
from lloydformer.algorithms.lloyd import Lloyd


@dataclass(frozen=True)
class Spherical(Lloyd):
    """Assign by the largest dot product, move each center to the direction of its points' sum.

    The new center of a cluster whose points sum to zero is 0/0, not a number.
    """

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        products = points @ centers.T
        return share(products == products.max(axis=1, keepdims=True), self.ties)

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        sums = mean(points, weights)
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)
