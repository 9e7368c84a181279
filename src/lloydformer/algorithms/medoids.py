"""Randomised k-medoids (alg:rnd-kmeds)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import squared_distances
from lloydformer.algorithms.lloyd import Lloyd
from lloydformer.algorithms.members import code_distances
from lloydformer.numerics.noise import gumbel


@dataclass(frozen=True)
class Medoids(Lloyd):
    r"""Each center moves to a randomly drawn point.

    The probability is $\propto \exp(-\lVert x_i - c_j \rVert^2 - 2\delta\, 1[a_i \ne j])$. The
    point drawn has the largest log-probability plus Gumbel noise.
    """

    separation: float = 100.0
    seed: int = 0

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        scores, _ = self.decision(points, centers, assignments, iteration)
        return np.eye(len(points))[scores.argmax(axis=1)]

    def decision(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> tuple[Float[ndarray, "k n"], Float[ndarray, " k"]]:
        """Return the scores with noise, and the largest one for each center."""
        n, k = assignments.shape
        noise = gumbel(self.seed, iteration, "decoder_cross", k, torch.arange(n)).numpy()
        lowered = self.separation * code_distances(assignments)
        scores = -squared_distances(points, centers).T - lowered + noise
        return scores, scores.max(axis=1)
