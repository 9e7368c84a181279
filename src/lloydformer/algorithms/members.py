"""Whose points a center weighs, in the algorithms that weigh points by distance."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray


def strangeness(assignments: Float[ndarray, "n k"]) -> Float[ndarray, "k n"]:
    """|y_i - e_j|^2: 0 for a cluster's own points, 2 for another's, between them for shared."""
    own = np.eye(assignments.shape[1])
    return ((assignments[None, :, :] - own[:, None, :]) ** 2).sum(axis=2)


def members(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """The points that are the least strange to each cluster.

    Its own ones; all points, if it has none; and where ties are averaged, those that belong to
    it the most.
    """
    strange = strangeness(assignments)
    return strange <= strange.min(axis=1, keepdims=True) + 1e-9


def belonging(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """The points with the largest share in each cluster; all points, if none has any."""
    shares = assignments.T
    return shares >= shares.max(axis=1, keepdims=True) - 1e-9
