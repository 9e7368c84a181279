"""Robust k-means (alg:rob-kmeans), with the center's index corrected to c^(t-1)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import squared_distances
from lloydformer.algorithms.lloyd import Lloyd
from lloydformer.algorithms.members import largest_shares, members


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
        scores = -self.inverse_temperature * squared_distances(points, centers).T
        own = largest_shares(assignments) if self.lifted else members(assignments)
        return np.stack(
            [_weights_of_members(o, normalise, s) for o, s in zip(own, scores, strict=True)]
        )


def _weights_of_members(
    own: ndarray, normalise: Callable[[ndarray], ndarray], scores: ndarray
) -> ndarray:
    """Return the weights of a cluster's own points, 0 for the others."""
    weights = np.zeros(len(scores))
    weights[own] = normalise(scores[own])
    return weights


def softmax(scores: Float[ndarray, " m"]) -> Float[ndarray, " m"]:
    """Return the soft-max of the scores."""
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def sparsemax(scores: Float[ndarray, " m"]) -> Float[ndarray, " m"]:
    """Return sparsemax: its threshold by bisection, then exactly for the support found."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(100):
        middle = (low + high) / 2
        if np.maximum(scores - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    support = scores > low
    threshold = (scores[support].sum() - 1) / support.sum()
    return np.maximum(scores - threshold, 0)
