"""The points that a center uses, in the algorithms that weigh points by distance."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray


def code_distances(assignments: Float[ndarray, "n k"]) -> Float[ndarray, "k n"]:
    """Return |y_i - e_j|^2: 0 for own points, 2 for those of other clusters, less if shared."""
    own = np.eye(assignments.shape[1])
    return ((assignments[None, :, :] - own[:, None, :]) ** 2).sum(axis=2)


def members(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """Return the mask of the points that are nearest to each cluster's code.

    These are its own points; all points if it has none; with averaged ties, those with the
    largest share in it.
    """
    away = code_distances(assignments)
    return away <= away.min(axis=1, keepdims=True) + 1e-9


def largest_shares(assignments: Float[ndarray, "n k"]) -> Bool[ndarray, "k n"]:
    """Return the mask of the points with the largest share in each cluster; all if it is empty."""
    shares = assignments.T
    return shares >= shares.max(axis=1, keepdims=True) - 1e-9
