"""Trimmed k-means (alg:trim-kmeans)."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import squared_distances
from lloydformer.algorithms.lloyd import Lloyd
from lloydformer.algorithms.members import members


@dataclass(frozen=True)
class Trimmed(Lloyd):
    """Lloyd's algorithm in which the farthest points of a cluster have no weight.

    Of m points, those not farther than the ceil(keep * m)-th nearest stay, ties included.
    """

    keep: float = 0.95

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
        scores = -squared_distances(points, centers).T
        scores[~members(assignments)] = -np.inf
        cuts = []
        for row in scores:
            own = np.sort(row[row > -np.inf])[::-1]
            cuts.append(own[ceil(self.keep * len(own) - 1e-9) - 1])
        return scores, np.array(cuts)
