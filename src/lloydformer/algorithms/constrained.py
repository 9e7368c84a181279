"""K-means with bounds on the sizes of its clusters."""

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy import sparse
from scipy.optimize import linprog

from lloydformer.algorithms.contract import mean, squared_distances
from lloydformer.algorithms.lloyd import Lloyd


def bounds_of(sizes: Any, n_points: int, n_clusters: int, upper: bool) -> ndarray:
    """Return the number of points for each cluster; a float is a fraction of all points."""
    if sizes is None:
        return np.full(n_clusters, n_points if upper else 0)

    def to_whole(points: float) -> int:
        # A millionth of a point is rounding: 1/3 of 3 points is one point.
        return ceil(points - 1e-6) if upper else floor(points + 1e-6)

    given = np.broadcast_to(np.asarray(sizes, dtype=object), n_clusters)
    return np.array([to_whole(s * n_points) if isinstance(s, float) else s for s in given])


def solve_linear_programme(
    costs: Float[ndarray, "n k"], lower: ndarray, upper: ndarray
) -> Float[ndarray, "n k"]:
    """Return the cheapest transport plan: rows sum to 1, columns are within the bounds.

    The constraints of a transport problem have whole numbers as solutions, so no row is split at a
    vertex, which the simplex method returns.
    """
    n, k = costs.shape
    rows = sparse.kron(sparse.eye(n), np.ones((1, k)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye(k))
    found = linprog(
        costs.ravel(),
        A_ub=sparse.vstack([columns, -columns]),
        b_ub=np.concatenate([upper, -np.asarray(lower)]),
        A_eq=rows,
        b_eq=np.ones(n),
        method="highs-ds",
    )
    if found.status != 0:
        raise ValueError(f"size_min, size_max: {found.message}")
    return np.asarray(found.x).reshape(n, k)


@dataclass(frozen=True)
class Constrained:
    """Lloyd's algorithm whose assignment is a transport problem: a linear programme.

    With an inverse temperature: Sinkhorn's iteration on exp(-gamma d^2), and means weighted by
    shares. Columns are scaled, not their logarithms, so distances must not be too large.
    """

    size_min: Any = None
    size_max: Any = None
    inverse_temperature: float | None = None
    n_rounds: int = 100

    def assign(self, points: ndarray, centers: ndarray) -> Float[ndarray, "n k"]:
        squares, (n, k) = squared_distances(points, centers), (len(points), len(centers))
        lower = bounds_of(self.size_min, n, k, upper=False)
        upper = bounds_of(self.size_max, n, k, upper=True)
        if self.inverse_temperature is None:
            return np.eye(k)[solve_linear_programme(squares, lower, upper).argmax(axis=1)]
        least = squares.min(axis=1, keepdims=True)  # a factor of a row, which rows lose again
        kernel, columns = np.exp(-self.inverse_temperature * (squares - least)), np.ones(k)
        for _ in range(self.n_rounds):
            rows = 1 / (kernel @ columns)
            sums = kernel.T @ rows
            columns = np.clip(sums, lower, upper) / sums
        shares = kernel * columns
        return shares / shares.sum(axis=1, keepdims=True)

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> Float[ndarray, "k n"]:
        if self.inverse_temperature is None:
            return Lloyd().weigh(points, centers, assignments, iteration)
        shares = assignments.T
        return shares / shares.sum(axis=1, keepdims=True)

    def place(self, points: ndarray, weights: ndarray) -> Float[ndarray, "k d"]:
        return mean(points, weights)
