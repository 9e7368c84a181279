"""Soft k-means (alg:soft-kmeans)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import mean, squared_distances


@dataclass(frozen=True)
class Soft:
    r"""Weights $w_{ij} \propto \exp(-\gamma \lVert x_i - c_j \rVert^2)$; centers are means."""

    inverse_temperature: float = 1.0

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        exponents = -self.inverse_temperature * squared_distances(points, centers)
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        return assignments.T / assignments.T.sum(axis=1, keepdims=True)

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return mean(points, weights)
