"""Rows with missing values: which values are observed, and distances over these alone.

A missing value is NaN in the data. Blocks keep finite points (missing values are filled in, so that
bounds, origins and initial centers need no special case) and a mask of the values that are
observed. `MaskedRows` computes distances and sums from the observed values alone.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.rows import DenseRows, Rows
from lloydformer.numerics.checks import ArgumentError
from lloydformer.numerics.clusters import add_by_label

Missing = Literal["error", "ignore", "impute"]
# Rows whose missing values are filled in at a time; bounds temporary memory.
_ROWS = 1 << 16


@dataclass(frozen=True)
class FoundMissing:
    """Points (n, d) whose missing values (NaN) were found and filled in.

    Attributes
    ----------
    filled : ndarray of shape (n, d)
        The points; a missing value is the mean of the observed ones of its column. Not written if
        no value is missing.
    observed : ndarray of shape (n, d)
        False where a value was missing.
    counts : ndarray of shape (d,)
        The number of observed values of each column.
    n_missing : int
        The number of missing values.
    n_empty, first_empty : int
        The number of rows without any value, and the first of them.
    """

    filled: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    n_missing: int
    n_empty: int
    first_empty: int

    def check(self, *, columns: bool) -> None:
        """Raise `ValueError` for a row without any value and, if `columns`, for such a column."""
        if self.n_empty:
            more = f" and {self.n_empty - 1:,} more rows" if self.n_empty > 1 else ""
            raise ArgumentError(
                "X",
                f"found no value in row {self.first_empty}{more}; remove rows without any value",
            )
        if columns and not self.counts.all():
            column = int(np.flatnonzero(self.counts == 0)[0])
            raise ArgumentError("X", f"found no value in column {column}; remove this column")


def find_missing(points: np.ndarray) -> FoundMissing:
    """Return the missing values of points, as the kernel of the native engine does."""
    observed = ~np.isnan(points)
    counts = observed.sum(axis=0)
    empty = np.flatnonzero(~observed.any(axis=1))
    totals = np.zeros(points.shape[1])
    for start in range(0, len(points), _ROWS):
        totals += np.nansum(points[start : start + _ROWS], axis=0, dtype=np.float64)
    means = (totals / np.maximum(counts, 1)).astype(points.dtype)
    filled = np.where(observed, points, means)
    n_missing = observed.size - int(counts.sum())
    first = int(empty[0]) if len(empty) else 0
    return FoundMissing(filled, observed, counts, n_missing, len(empty), first)


def fill_blocks(blocks: TensorBlocks) -> TensorBlocks:
    """Return blocks with NaN filled in by the means of the columns; themselves if there is none."""
    if blocks.device.type != "cpu" or not bool(torch.isnan(blocks.points).any()):
        return blocks
    filled = find_missing(blocks.points.numpy()).filled
    return replace(blocks, points=torch.from_numpy(filled), known_ends=None, statistics=None)


class MaskedRows(DenseRows):
    r"""Rows that are compared with centers by their observed values alone.

    The squared distance of row i to a center is $f_i \sum_{l \in O_i} (x_{il} - c_l)^2$, where O_i
    are its observed columns. $f_i = d / |O_i|$ if distances are scaled, otherwise 1.

    Parameters
    ----------
    rows : DenseRows
        The rows with missing values filled in.
    observed : Tensor of shape (m, d)
        False where a value is missing.
    scaled : bool
        Scale the distances of a row with few observed values to those of a whole row.
    """

    def __init__(self, rows: DenseRows, observed: Bool[Tensor, "m d"], scaled: bool) -> None:
        self._mask = observed.to(rows.points.dtype)
        self.points = rows.points * self._mask  # 0 where missing: it adds nothing to a product
        self._stored = rows._stored
        self.observed, self.scaled = observed, scaled

    @property
    def factors(self) -> Float[Tensor, " m"]:
        """The factors f_i of the distances, in float64."""
        counts = self.observed.sum(dim=1).double()
        return self.observed.shape[1] / counts if self.scaled else torch.ones_like(counts)

    def hide(self, rows: Tensor, values: Tensor) -> Tensor:
        return values * self.observed[rows]

    def scores(self, centers: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        # of the observed columns and without the factors, which do not change the nearest center
        return torch.addmm(self._mask @ centers.square().mT, self.points, centers.mT, alpha=-2)

    def squared_distances(
        self, centers: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        # without a mask of the points: those in float64 may be compared with centers in float32
        difference = (self.points - centers[labels]) * self.observed
        return torch.linalg.vecdot(difference, difference) * self.factors.to(difference.dtype)

    def exact_squares(
        self, returned: Float[Tensor, "k d"], labels: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        difference = (self._stored - returned[labels]) * self.observed
        return torch.linalg.vecdot(difference, difference) * self.factors

    def distances_to_all(
        self, centers: Float[Tensor, "k d"], returned: Float[Tensor, "k d"] | None = None
    ) -> Float[Tensor, "m k"]:
        squares = super().distances_to_all(centers, returned)
        return squares * self.factors.to(squares.dtype)[:, None]

    def sums(
        self, labels: Int[Tensor, " m"], n_clusters: int, weights: Tensor | None
    ) -> Float[Tensor, "k d"]:
        """Return the sum of w_i f_i x_i over the observed values of each label."""
        return add_by_label(self.points * self._row_weights(weights), labels, n_clusters)

    def counts(
        self, labels: Int[Tensor, " m"], n_clusters: int, weights: Tensor | None
    ) -> Float[Tensor, "k d"]:
        """Return the sum of w_i f_i of each label and column, over the observed values."""
        return add_by_label(self.observed * self._row_weights(weights), labels, n_clusters)

    def _row_weights(self, weights: Tensor | None) -> Float[Tensor, "m 1"]:
        factors = self.factors
        return (factors if weights is None else factors * weights.double())[:, None]

    def part(self, start: int, stop: int) -> "MaskedRows":
        return MaskedRows(super().part(start, stop), self.observed[start:stop], self.scaled)

    def double(self) -> "MaskedRows":
        rows = DenseRows(self.points.double(), None)
        rows._stored = self._stored
        return MaskedRows(rows, self.observed, self.scaled)


@dataclass(frozen=True)
class MaskedBlocks(TensorBlocks):
    """Points with missing values; `points` have these filled in.

    Parameters
    ----------
    observed : Tensor of shape (n, d)
        False where a value is missing.
    scaled : bool
        As in `MaskedRows`.
    """

    observed: Tensor | None = None  # always set: fields of the base class have defaults
    scaled: bool = True

    @property
    def filled(self) -> TensorBlocks:
        """These points as complete rows, in the same coordinates."""
        values = {field.name: getattr(self, field.name) for field in fields(TensorBlocks)}
        return TensorBlocks(**values | {"given_origin": self.origin})

    def read(self, start: int, stop: int) -> Rows:
        assert self.observed is not None
        return MaskedRows(
            self.to_rows(self.points[start:stop]), self.observed[start:stop], self.scaled
        )

    def take(self, rows: Tensor) -> Tensor:
        assert self.observed is not None
        return super().take(rows) * self.observed[rows]

    def subset(self, rows: Tensor) -> "TensorBlocks":
        assert self.observed is not None
        return self.mask(super().subset(rows), self.observed[rows], scaled=self.scaled)

    def slice_rows(self, start: int, stop: int) -> "TensorBlocks":
        assert self.observed is not None
        part = self.observed[start:stop]
        return self.mask(super().slice_rows(start, stop), part, scaled=self.scaled)

    @classmethod
    def mask(cls, blocks: TensorBlocks, observed: Tensor, *, scaled: bool) -> "MaskedBlocks":
        """Return blocks whose points are filled in, with the mask of the observed values."""
        values: dict[str, Any] = {f.name: getattr(blocks, f.name) for f in fields(TensorBlocks)}
        return cls(**values, observed=observed, scaled=scaled)
