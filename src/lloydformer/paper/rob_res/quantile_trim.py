"""Trimmed k-means as the authors ran it: keep points strictly below an interpolated quantile.

Of m points in a cluster this keeps ceil(q (m - 1)): for most m one fewer than alg:trim-kmeans (and
`keep`), and none of a single point. A cluster without points takes a random point as its center.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def quantile_trimmed(
    points: Float[ndarray, "n d"],
    centers: Float[ndarray, "k d"],
    quantile: float,
    n_steps: int,
    rng: np.random.Generator,
) -> Float[ndarray, "k d"]:
    """The centers after `n_steps` steps from `centers`; `rng` draws centers of empty clusters."""
    squares = np.square(points).sum(axis=1)
    for _ in range(n_steps):
        scores = np.square(centers).sum(axis=1) - 2 * points @ centers.T
        labels = scores.argmin(axis=1)
        distances = squares + scores.min(axis=1)
        means = []
        for number in range(len(centers)):
            own = np.flatnonzero(labels == number)
            near = own[distances[own] < _cut(distances[own], quantile)]
            means.append(points[near].mean(axis=0) if len(near) else rng.choice(points))
        centers = np.stack(means)
    return centers


def _cut(distances: Float[ndarray, " m"], quantile: float) -> float:
    return float(np.quantile(distances, quantile)) if len(distances) else 0.0
