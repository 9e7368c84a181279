"""Distances between rows of the data, as the search for medoids asks for them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy import ndarray
from scipy import sparse

METRICS = ("sqeuclidean", "euclidean", "manhattan", "cosine")
"""Metrics of rows of numbers."""


@runtime_checkable
class RowDistances(Protocol):
    """What the search knows of the data: distances, and means of rows where there are any."""

    @property
    def n_rows(self) -> int: ...

    @property
    def has_means(self) -> bool: ...

    def of_row(self, row: int) -> ndarray:
        """Distances of a row to all rows, (n,)."""
        ...

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        """Distances of some rows to their weighted mean."""
        ...

    def bound(self, r: ndarray) -> float:
        """At least the largest distance of two rows; r: those of one row to all, (n,)."""
        ...


@dataclass(frozen=True)
class PointDistances:
    """Distances of points (n, d) by a metric; for "cosine" they are unit vectors."""

    points: ndarray
    metric: str = "sqeuclidean"
    has_means = True

    @property
    def n_rows(self) -> int:
        return len(self.points)

    def of_row(self, row: int) -> ndarray:
        return self._apart(self.points, self.points[row])

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        points = self.points[rows]
        return self._apart(points, weights @ points / (weights.sum() or 1.0))

    def bound(self, r: ndarray) -> float:
        return _bound_of_squares(r)

    def _apart(self, points: ndarray, place: ndarray) -> ndarray:
        apart = points - place
        if self.metric == "manhattan":
            return np.abs(apart).sum(axis=1)
        squares = np.einsum("id,id->i", apart, apart)
        if self.metric == "euclidean":
            return np.sqrt(squares)
        return squares / 2 if self.metric == "cosine" else squares


@dataclass(frozen=True)
class SparseCosines:
    """Cosine distances of sparse unit vectors, a CSR matrix (n, d)."""

    directions: Any
    has_means = True

    @property
    def n_rows(self) -> int:
        return int(self.directions.shape[0])

    def of_row(self, row: int) -> ndarray:
        return self._apart(self.directions, self.directions[[row]])

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        points = self.directions[rows]
        mean = sparse.csr_array(weights[None] / (weights.sum() or 1.0)) @ points
        return self._apart(points, mean)

    def bound(self, r: ndarray) -> float:
        return _bound_of_squares(r)

    def _apart(self, points: Any, place: Any) -> ndarray:
        """|x - y|^2 / 2, which is 1 - cos for unit vectors; a mean is shorter."""
        squares = float(place.multiply(place).sum())
        products = np.asarray((points @ place.T).todense()).reshape(-1)
        return np.maximum((1 + squares) / 2 - products, 0.0)


@dataclass(frozen=True)
class MatrixDistances:
    """A matrix (n, n) of distances, symmetric."""

    matrix: ndarray
    has_means = False

    @property
    def n_rows(self) -> int:
        return len(self.matrix)

    def of_row(self, row: int) -> ndarray:
        return np.asarray(self.matrix[row], float)

    def to_mean(self, rows: ndarray, weights: ndarray) -> ndarray:
        raise NotImplementedError("a matrix of distances has no means")

    def bound(self, r: ndarray) -> float:
        return self._far

    @cached_property
    def _far(self) -> float:
        """Twice the largest distance; the triangle inequality may not hold."""
        return 2 * float(self.matrix.max())


def _bound_of_squares(r: ndarray) -> float:
    """By the triangle inequality (2 sqrt(r))^2; larger than 2 r, for what is not squared."""
    return 4 * float(r.max())
