"""Rows: some consecutive points, dense or sparse, and the operations that a fold needs.

Dense rows are tensors on any device, relative to an origin near them, so that squares do not lose
digits far away from zero. Sparse rows stay sparse, with the origin 0. The data as a whole are never
copied.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor

from lloydformer.numerics.clusters import add_by_label

# |x|^2 - 2 x c + |c|^2 has a rounding error of about eps (|x|^2 + |c|^2). A result below 2**-10 of
# that sum has lost 10 bits or more, and is computed again from the differences.
_CANCELLED = 2.0**-10
# The same for |x|^2 - 2 x c + |c|^2 in float64: 33 bits are left, more than a float32 has.
_CANCELLED_IN_FLOAT64 = 2.0**-20
# Pairs of points and centers whose differences are held at a time; bounds temporary memory.
_PAIRS = 1 << 12
# Rows whose weighted sums are added up in the precision of the rows. Longer products would lose
# digits in float32: leaves have up to 2**20 rows on a GPU.
_SUMMED = 1 << 14


@runtime_checkable
class Rows(Protocol):
    """m points with d features; centers are given relative to the same origin."""

    def scores(self, centers: Tensor) -> Tensor:
        """Return |c_j|^2 - 2 x_i c_j, (m, k): squared distances, less |x_i|^2."""

    def squared_norms(self) -> Tensor:
        """Return |x_i|^2, (m,)."""

    def squared_norms_in_float64(self) -> Tensor:
        """Return |x_i|^2, (m,), added up in float64 for rows in float32 as well."""

    def squared_distances(self, centers: Tensor, labels: Tensor) -> Tensor:
        """Return |x_i - c_{label i}|^2, (m,)."""

    def exact(self, indices: Tensor) -> Tensor:
        """Return some of the rows in float64, dense, scaled, but not relative to the origin."""

    def exact_squares(self, returned: Tensor, labels: Tensor) -> Tensor:
        """Return |x_i - c_{label i}|^2 in float64, (m,), for centers of `Layout.to_exact_units`."""

    def sums(self, labels: Tensor, n_clusters: int, weights: Tensor | None) -> Tensor:
        """Return the sum of w_i x_i over each label, (k, d) in float64."""

    def weighted_sums(self, weights: Tensor) -> Tensor:
        """Return the sums of w_ij x_i over i for each j, (k, d) in float64."""

    def take(self, indices: Tensor) -> Tensor:
        """Return some of the rows, dense."""

    def part(self, start: int, stop: int) -> "Rows":
        """Return some consecutive rows of these."""

    def directions(self) -> "Rows":
        """Return these rows divided by their norms; zeros stay zeros."""

    def double(self) -> "Rows":
        """Return these rows in float64."""

    def products(self, matrix: Tensor) -> Tensor:
        """Return the products (m, e) with a matrix (d, e)."""

    def hide(self, rows: Tensor, values: Tensor) -> Tensor:
        """Return values (r, d) of some rows, with 0 in columns that a row is not compared in.

        Complete rows have no such column; rows with missing values do (`data/missing.py`).
        """
        return values

    def nearest(self, centers: Float[Tensor, "k d"]) -> Int[Tensor, " m"]:
        """Return the nearest center of each row; on ties the first one.

        Scores alone would not do: rows and centers that are near each other, and far from the
        origin, have scores that differ by less than their rounding. Labels of such rows would be
        arbitrary, and the objective would rise.
        """
        precise = centers.double()
        return self._compare_centers(centers, precise, lambda rows: self.take(rows).double())

    def nearest_exactly(
        self, centers: Float[Tensor, "k d"], returned: Float[Tensor, "k d"]
    ) -> Int[Tensor, " m"]:
        """Return the nearest of the centers `returned`, of which `centers` are rounded ones.

        Rows are then as they are stored, not relative to the origin.
        """
        return self._compare_centers(centers, returned, self.exact)

    def _compare_centers(
        self, centers: Tensor, precise: Tensor, read: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the nearest of the centers `precise`, which are in the coordinates of `read`.

        Scores of `centers` decide where rounding cannot: the bound of their error is that of
        `ScoreError` in engines/native/kernels/centers.hpp, with the proof. It holds for any order
        of additions. The other rows are compared by differences in float64; on ties the first
        center wins.
        """
        held, roundings = torch.finfo(centers.dtype), centers.shape[1] + 8
        sizes, norms = torch.linalg.vecdot(centers, centers), self.squared_norms()
        of_center = 2 * roundings * held.eps * sizes
        of_row = roundings * (held.eps * norms + held.tiny)
        # At most of_row above the true scores, and at most of_row + 2 of_center below them.
        lowered = self.scores(centers).sub_(of_center)
        least, labels = lowered.min(dim=1)
        limits = least + 2 * (of_center[labels] + of_row)
        # By the second least score of each row, which takes a fifth of the time of a comparison of
        # all pairs with the limits.
        second = lowered.scatter_(1, labels[:, None], torch.inf).amin(dim=1)
        undecided = (second <= limits).nonzero()[:, 0]
        # So many rows that their differences to all centers are _PAIRS or fewer.
        for rows in torch.split(undecided, max(1, _PAIRS // len(centers))):
            possible = lowered[rows] <= limits[rows, None]
            possible[torch.arange(len(rows)), labels[rows]] = True
            row, near = possible.nonzero().unbind(dim=1)
            x, c, first = read(rows)[row], precise[near], precise[0]
            difference = self.hide(rows[row], x - c)
            away = torch.linalg.vecdot(difference, difference)
            # Less |x - first|^2 for rows so far away that all differences are the same number.
            far = norms.double()[rows[row]] > 2.0**60 * sizes.max().double()
            moved = self.hide(rows[row], c - first)
            away[far] = torch.linalg.vecdot(moved, c + first - 2 * x)[far]
            squares = torch.full((len(rows), len(centers)), torch.inf).to(precise)
            squares[row, near] = away
            labels[rows] = squares.min(dim=1).indices
        return labels

    def distances_to_all(
        self, centers: Float[Tensor, "k d"], returned: Float[Tensor, "k d"] | None = None
    ) -> Float[Tensor, "m k"]:
        """Return |x_i - c_j|^2, (m, k); small ones by differences, so that equal rows have 0.

        returned: the centers of which `centers` are rounded ones; differences are then in float64.
        """
        norms = self.squared_norms()[:, None]
        squares = (self.scores(centers) + norms).clamp_(min=0)
        cancelled = squares <= _CANCELLED * (norms + torch.linalg.vecdot(centers, centers))
        for pairs in torch.split(cancelled.nonzero(), _PAIRS):
            points, near = pairs.unbind(dim=1)
            if returned is None:
                difference = self.take(points) - centers[near]
            else:
                difference = self.exact(points) - returned[near]
            difference = self.hide(points, difference)
            squares[points, near] = torch.linalg.vecdot(difference, difference).to(squares.dtype)
        return squares


class DenseRows(Rows):
    """Rows of a tensor, relative to an origin."""

    def __init__(self, points: Float[Tensor, "m d"], origin: Float[Tensor, " d"] | None) -> None:
        self.points = points if origin is None else points - origin
        self._stored = points

    def scores(self, centers: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        squares = torch.linalg.vecdot(centers, centers)
        return torch.addmm(squares, self.points, centers.mT, alpha=-2)

    def squared_norms(self) -> Float[Tensor, " m"]:
        return torch.linalg.vecdot(self.points, self.points)

    def squared_norms_in_float64(self) -> Float[Tensor, " m"]:
        points = self.points.double()
        return torch.linalg.vecdot(points, points)

    def squared_distances(
        self, centers: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        difference = self.points - centers[labels]
        return torch.linalg.vecdot(difference, difference)

    def exact(self, indices: Int[Tensor, " r"]) -> Float[Tensor, "r d"]:
        return self._stored[indices].double()

    def exact_squares(
        self, returned: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        difference = self._stored - returned[labels]
        return torch.linalg.vecdot(difference, difference)

    def sums(
        self, labels: Int[Tensor, " m"], n_clusters: int, weights: Tensor | None
    ) -> Float[Tensor, "k d"]:
        points = self.points.double()
        if weights is not None:
            points = points * weights[:, None]
        return add_by_label(points, labels, n_clusters)

    def weighted_sums(self, weights: Float[Tensor, "m k"]) -> Float[Tensor, "k d"]:
        points = self.points.to(weights.dtype)
        count = len(weights) // _SUMMED
        whole = count * _SUMMED
        rest = (weights[whole:].mT @ points[whole:]).double()
        if count == 0:
            return rest
        cut, rows = (part[:whole].view(count, _SUMMED, -1) for part in (weights, points))
        return (cut.mT @ rows).double().sum(dim=0) + rest

    def take(self, indices: Int[Tensor, " r"]) -> Float[Tensor, "r d"]:
        return self.points[indices]

    def part(self, start: int, stop: int) -> "DenseRows":
        rows = DenseRows(self.points[start:stop], None)
        rows._stored = self._stored[start:stop]
        return rows

    def directions(self) -> "DenseRows":
        # Divide by the largest value first: squares of the values could overflow or vanish.
        largest = self.points.abs().amax(dim=1, keepdim=True)
        scaled = self.points / torch.where(largest > 0, largest, 1)
        norms = scaled.norm(dim=1, keepdim=True)
        return DenseRows(scaled / torch.where(norms > 0, norms, 1), None)

    def double(self) -> "DenseRows":
        return DenseRows(self.points.double(), None)

    def products(self, matrix: Float[Tensor, "d e"]) -> Float[Tensor, "m e"]:
        return self.points @ matrix


class SparseRows(Rows):
    """Rows of a CSR matrix, on the CPU; the origin is zero, as centering would fill them."""

    def __init__(self, matrix: sparse.csr_matrix | sparse.csr_array) -> None:
        self.matrix = matrix

    def scores(self, centers: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        products = torch.from_numpy(self.matrix @ centers.numpy().T)
        return products.mul_(-2).add_(torch.linalg.vecdot(centers, centers))

    def squared_norms(self) -> Float[Tensor, " m"]:
        squares = self.matrix.multiply(self.matrix).sum(axis=1)
        return torch.from_numpy(np.asarray(squares, dtype=self.matrix.dtype).ravel())

    def squared_norms_in_float64(self) -> Float[Tensor, " m"]:
        return SparseRows(self.matrix.astype(np.float64)).squared_norms()

    def squared_distances(
        self, centers: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        # Each entry times that of its row's own center: products with all centers would be (m, k).
        own = np.repeat(labels.numpy(), np.diff(self.matrix.indptr))
        entries = self.matrix.data * centers.numpy()[own, self.matrix.indices]
        lines = np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))
        products = np.bincount(lines, weights=entries, minlength=self.matrix.shape[0])
        squares = torch.linalg.vecdot(centers, centers)[labels] + self.squared_norms()
        return (squares - 2 * torch.from_numpy(products).to(squares.dtype)).clamp(min=0)

    def exact(self, indices: Int[Tensor, " r"]) -> Float[Tensor, "r d"]:
        return self.take(indices).double()

    def exact_squares(
        self, returned: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        exact = SparseRows(self.matrix.astype(np.float64))
        squares = exact.squared_distances(returned, labels)
        norms = exact.squared_norms() + torch.linalg.vecdot(returned, returned)[labels]
        near = (squares <= _CANCELLED_IN_FLOAT64 * norms).nonzero()[:, 0]
        for rows in torch.split(near, _PAIRS):
            difference = exact.take(rows) - returned[labels[rows]]
            squares[rows] = torch.linalg.vecdot(difference, difference)
        return squares

    def sums(
        self, labels: Int[Tensor, " m"], n_clusters: int, weights: Tensor | None
    ) -> Float[Tensor, "k d"]:
        m = self.matrix.shape[0]
        masses = np.ones(m) if weights is None else weights.double().numpy()
        # The matrix (k, m) with the mass of row i at (label i, i): one entry for each column.
        members = sparse.csc_matrix(
            (masses, labels.numpy(), np.arange(m + 1)), shape=(n_clusters, m)
        )
        return torch.from_numpy((members @ self.matrix).toarray(order="C").astype(np.float64))

    def weighted_sums(self, weights: Float[Tensor, "m k"]) -> Float[Tensor, "k d"]:
        return torch.from_numpy((self.matrix.T @ weights.double().numpy()).T)

    def take(self, indices: Int[Tensor, " r"]) -> Float[Tensor, "r d"]:
        return torch.from_numpy(self.matrix[indices.numpy()].toarray())

    def part(self, start: int, stop: int) -> "SparseRows":
        return SparseRows(self.matrix[start:stop])

    def directions(self) -> "SparseRows":
        scaled = self.matrix.copy()
        scaled.sum_duplicates()
        counts = np.diff(scaled.indptr)
        largest = np.asarray(abs(scaled).max(axis=1).todense()).ravel()
        scaled.data /= np.repeat(np.where(largest > 0, largest, 1), counts)
        norms = SparseRows(scaled).squared_norms().sqrt().numpy()
        scaled.data /= np.repeat(np.where(norms > 0, norms, 1), counts)
        return SparseRows(scaled)

    def double(self) -> "SparseRows":
        return SparseRows(self.matrix.astype(np.float64))

    def squared(self) -> "SparseRows":
        """Return rows of the squares of all values."""
        return SparseRows(self.matrix.multiply(self.matrix).tocsr())

    def beside(self, more: "SparseRows | None" = None) -> "SparseRows":
        """Return rows with further columns: those of `more`, or the squared norm."""
        if more is None:
            more = SparseRows(sparse.csr_matrix(self.squared_norms().numpy()[:, None]))
        return SparseRows(sparse.hstack([self.matrix, more.matrix], format="csr"))

    def products(self, matrix: Float[Tensor, "d e"]) -> Float[Tensor, "m e"]:
        return torch.from_numpy(self.matrix @ matrix.numpy())
