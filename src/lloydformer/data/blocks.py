"""Blocks: data that can be read again and again, a range of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.extent import Survey, extent
from lloydformer.data.layout import Layout
from lloydformer.data.leaves import LEAF
from lloydformer.data.prefetch import prefetch_rows
from lloydformer.data.rows import DenseRows, Rows, SparseRows
from lloydformer.data.scaling import Scaling
from lloydformer.numerics.origin import middle, middle_of_ends


@runtime_checkable
class Blocks(Protocol):
    """Data that can be read again and again, by global row numbers.

    `read` and `weights` may be called from several threads.
    """

    @property
    def layout(self) -> Layout:
        """Sizes, precision, origin and scaling: what is known without reading rows."""
        ...

    @property
    def mapped(self) -> bool:
        """Are rows mapped from a file, so that it pays to prefetch them?"""
        ...

    @property
    def first_row(self) -> int:
        """The number of the first row in the data that these blocks are a part of."""
        ...

    def prefetch(self, start: int, stop: int) -> None:
        """Ask for rows that will be read soon. Called from a thread of its own, if mapped."""
        ...

    def read(self, start: int, stop: int) -> Rows:
        """Rows [start, stop), relative to the origin."""
        ...

    def take(self, rows: Tensor) -> Tensor:
        """Rows by their global numbers, dense, relative to the origin."""
        ...

    def weights(self, start: int, stop: int) -> Tensor | None:
        """Weights of the rows [start, stop) in float64; None if all rows weigh 1."""
        ...


def count_weighted(data: Blocks) -> int:
    """The number of rows with a weight above 0."""
    leaves = ((stop - start, data.weights(start, stop)) for start, stop in ranges(data.layout))
    return sum(count if w is None else int(torch.count_nonzero(w > 0)) for count, w in leaves)


def ranges(layout: Layout) -> Iterator[tuple[int, int]]:
    """The rows [start, stop) of each leaf, in order."""
    for start in range(0, layout.n_rows, layout.leaf):
        yield start, min(start + layout.leaf, layout.n_rows)


@dataclass(frozen=True)
class TensorBlocks:
    """A tensor (n, d) on any device, sliced without copying.

    Parameters
    ----------
    points : Tensor of shape (n, d)
        The data in its own units.
    sample_weight : Tensor of shape (n,), optional
        Weights in float64.
    leaf : int
        Rows of a leaf.
    seen_from : Tensor of shape (d,), optional
        The origin; by default the middle of the data, or zero for directions.
    directions : bool
        Divide each row by its norm when it is read.
    scaling : Scaling, optional
        Applied to rows as they are read; centers are returned in the original units.
    names : tuple of str, optional
        Names of the columns.
    mapped : bool
        The points are mapped from a file, so it pays to prefetch them.
    part : int, optional
        Rows of a leaf that are processed together; by default the whole leaf.
    known_ends : Tensor of shape (2, d), optional
        `ends` of other blocks over the same points, so that they are not computed again. They may
        be on the CPU whatever the device of the points.
    weight_unit : float
        The unit of the weights, a power of two.
    survey : Survey, optional
        Sums over the points, if they are known.
    first_row : int
        The number of the first row in the data that these are a part of.
    """

    points: Tensor
    sample_weight: Tensor | None = None
    leaf: int = LEAF
    seen_from: Tensor | None = None
    directions: bool = False
    scaling: Scaling | None = None
    names: tuple[str, ...] | None = None
    mapped: bool = False
    part: int | None = None
    known_ends: Tensor | None = None
    weight_unit: float = 1.0
    survey: Survey | None = None
    first_row: int = 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Blocks are no array: other packages would read all of them, without their scaling."""
        raise TypeError(
            "blocks of lf.data.open are for the estimators of lloydformer alone; in place of a "
            "scaler in a pipeline use lf.data.open(..., scale=...), or pass .points.numpy()"
        )

    @cached_property
    def ends(self) -> Tensor:
        """The smallest and the largest value of each column in the units of the file, (2, d)."""
        return extent(self.points) if self.known_ends is None else self.known_ends

    @cached_property
    def origin(self) -> Tensor:
        if self.seen_from is not None:
            return self.seen_from
        if self.directions:
            return torch.zeros_like(self.points[0])
        ends = self._scaled(self.ends)
        if ends.device.type != "cpu":
            return middle(ends)
        return torch.from_numpy(self._middle).to(self.device)

    @cached_property
    def origin_on_host(self) -> np.ndarray:
        """The origin in float64."""
        if self.seen_from is not None or self.directions or self.ends.device.type != "cpu":
            return self.origin.cpu().double().numpy()
        return self._middle.astype(np.float64)

    @cached_property
    def _middle(self) -> np.ndarray:
        """The middle of the data, from ends on the CPU."""
        return middle_of_ends(self._scaled(self.ends).numpy())

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            self.n_rows, self.n_features, self.dtype, self.device, self.leaf,
            self.part or self.leaf, self.origin, self.scaling, self.sample_weight is not None,
            self.weight_unit,
        )  # fmt: skip

    @property
    def farthest(self) -> float:
        """Upper bound of the squared norms after centering and scaling."""
        if self.directions:
            return 1.0
        with np.errstate(over="ignore"):  # infinity is an upper bound of the largest distances
            return float(np.square(self._corner).sum())

    @property
    def reach(self) -> float:
        """Upper bound of the absolute values after centering and scaling; above 0."""
        return 1.0 if self.directions else float(self._corner.max()) or 1.0

    @cached_property
    def _corner(self) -> np.ndarray:
        """Upper bounds of the columns' absolute values after centering and scaling."""
        ends = self._scaled(self.ends).cpu().numpy()
        return np.abs(ends - self.origin_on_host.astype(ends.dtype)).max(axis=0).astype(np.float64)

    @property
    def n_rows(self) -> int:
        return self.points.shape[0]

    @property
    def n_features(self) -> int:
        return self.points.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.points.dtype

    @property
    def device(self) -> torch.device:
        return self.points.device

    def prefetch(self, start: int, stop: int) -> None:
        prefetch_rows(self.points[start:stop])

    def read(self, start: int, stop: int) -> Rows:
        return self.rows_of(self.points[start:stop])

    def take(self, rows: Tensor) -> Tensor:
        return self.rows_of(self.points[rows]).points

    def seen(self) -> Tensor:
        """A copy of all rows as they are read: scaled, or directions, relative to the origin."""
        seen = torch.empty_like(self.points, memory_format=torch.contiguous_format)
        for start, stop in ranges(self.layout):
            seen[start:stop] = self.rows_of(self.points[start:stop]).points
        return seen

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> "TensorBlocks":
        """A copy of some rows, in the same coordinates."""
        rows = rows.to(self.device)
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(
            self, points=self.points[rows], sample_weight=weights, seen_from=self.origin,
            known_ends=self.ends, mapped=False, survey=None,
        )  # fmt: skip

    def between(self, start: int, stop: int) -> "TensorBlocks":
        """The rows [start, stop) without a copy, in the same coordinates."""
        return replace(
            self, points=self.points[start:stop], sample_weight=self.weights(start, stop),
            seen_from=self.origin, known_ends=self.ends, survey=None,
            first_row=self.first_row + start,
        )  # fmt: skip

    def rows_of(self, points: Tensor) -> DenseRows:
        """Points in the units of the data as rows: scaled, or directions, less the origin."""
        if self.directions:
            return DenseRows(self._scaled(points), None).directions()
        return DenseRows(self._scaled(points), self.origin)

    def _scaled(self, points: Tensor) -> Tensor:
        return points if self.scaling is None else self.scaling.apply(points)


@dataclass(frozen=True)
class SparseBlocks:
    """A CSR matrix, which stays sparse; the origin is zero, since centering would fill it.

    Precondition: `data.canonical.canonical` has returned the matrix.
    """

    matrix: sparse.csr_matrix | sparse.csr_array
    sample_weight: Tensor | None = None
    leaf: int = LEAF
    directions: bool = False
    part: int | None = None
    weight_unit: float = 1.0
    first_row: int = 0
    mapped: ClassVar[bool] = False

    @cached_property
    def ends(self) -> Tensor:
        """The smallest and the largest of all values and 0, (2, 1); 0 is the origin."""
        ends = [[end(self.matrix.data, initial=0.0)] for end in (np.min, np.max)]
        return torch.tensor(ends, dtype=self.layout.dtype)

    @cached_property
    def layout(self) -> Layout:
        n_rows, n_features = self.matrix.shape
        dtype = torch.float32 if self.matrix.dtype == "float32" else torch.float64
        return Layout(
            n_rows, n_features, dtype, torch.device("cpu"), self.leaf, self.part or self.leaf,
            torch.zeros(n_features, dtype=dtype), None, self.sample_weight is not None,
            self.weight_unit,
        )  # fmt: skip

    def prefetch(self, start: int, stop: int) -> None:
        """Nothing to do: the matrix is in memory."""

    def read(self, start: int, stop: int) -> Rows:
        rows = SparseRows(self.matrix[start:stop])
        return rows.directions() if self.directions else rows

    def take(self, rows: Tensor) -> Tensor:
        taken = SparseRows(self.matrix[rows.numpy()])
        chosen = taken.directions() if self.directions else taken
        return chosen.take(torch.arange(len(rows)))

    def zero_rows(self, start: int, stop: int) -> Tensor:
        """Those of the rows [start, stop) that hold no number but 0; stored zeros are numbers."""
        starts = self.matrix.indptr[start : stop + 1]
        values = self.matrix.data[starts[0] : starts[-1]]
        filled = starts[1:] > starts[:-1]
        if np.count_nonzero(values) < len(values):
            filled = np.zeros(stop - start, dtype=bool)
            where = np.flatnonzero(values) + starts[0]
            filled[np.searchsorted(starts, where, side="right") - 1] = True
        return torch.from_numpy(np.flatnonzero(~filled) + start)

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> "SparseBlocks":
        """A copy of some rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, matrix=self.matrix[rows.numpy()], sample_weight=weights)
