"""Soft k-means (alg:soft-kmeans)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import mean, squared_distances


@dataclass(frozen=True)
class Soft:
    r"""Weights $w_{ij} \propto \exp(-\gamma \lVert x_i - c_j \rVert^2)$; centers are means.

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

    def _logarithms(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        """Return the logarithm of each point's weight for each center."""
        exponents = -self.inverse_temperature * squared_distances(points, centers)
        exponents -= exponents.max(axis=1, keepdims=True)
        logs = exponents - np.log(np.exp(exponents).sum(axis=1, keepdims=True))
        return np.maximum(logs, -1e300)  # beyond this all points weigh the same

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return mean(points, weights)
