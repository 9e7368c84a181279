"""Blocks: data that can be read repeatedly, a range of rows at a time.

`Blocks` is the contract between data and engines. `TensorBlocks` holds dense rows in memory, in a
mapped file or on a GPU; `sparse_blocks` and `streamed_blocks` have the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.column_statistics import ColumnStatistics, Scaling, column_min_max
from lloydformer.data.layout import LEAF, Layout
from lloydformer.data.mapped_files import prefetch_rows
from lloydformer.data.rows import DenseRows, Rows
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.scaling import sample_numbers, sampled_origin


@runtime_checkable
class Blocks(Protocol):
    """Data that can be read repeatedly. Rows are counted from 0 here, not from `first_row`.

    `read` and `weights` may be called from several threads.
    """

    @property
    def layout(self) -> Layout:
        """Sizes, precision, origin and scaling."""

    @property
    def mapped(self) -> bool:
        """True if rows are mapped from a file, so that prefetching them pays."""

    @property
    def first_row(self) -> int:
        """The number of the first row in the data that these blocks are a part of."""

    def prefetch(self, start: int, stop: int) -> None:
        """Load rows that will be read soon. Called from a separate thread, if `mapped`."""

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows [start, stop), relative to the origin."""

    def take(self, rows: Tensor) -> Tensor:
        """Return these rows, dense, relative to the origin."""

    def weights(self, start: int, stop: int) -> Tensor | None:
        """Return the weights of the rows [start, stop) in float64; None if all rows weigh 1."""


def count_positive_weights(data: Blocks) -> int:
    """Return the number of rows with a weight above 0."""
    count = 0
    for start, stop in leaf_ranges(data.layout):
        weights = data.weights(start, stop)
        count += stop - start if weights is None else int(torch.count_nonzero(weights > 0))
    return count


def leaf_ranges(layout: Layout) -> Iterator[tuple[int, int]]:
    """Yield the rows [start, stop) of each leaf, in order."""
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
        Rows that are summed on their own before sums are merged along a tree (`Layout`).
    given_origin : Tensor of shape (d,), optional
        The origin; by default the median of a sample of the rows, or zero for directions.
    directions : bool
        Divide each row by its norm when it is read.
    scaling : Scaling, optional
        Applied to rows as they are read; centers are returned in the original units.
    is_bent : bool
        The points are in the units of the data after the curves of the scaling: `bent` returns
        them so, and engines read them so.
    given : Tensor of shape (n, d), optional
        The points in the units of the data, if `points` are bent.
    names : tuple of str, optional
        Names of the columns.
    mapped : bool
        The points are mapped from a file, so that prefetching them pays.
    part : int, optional
        Rows of a leaf that are processed together; by default the whole leaf.
    known_ends : Tensor of shape (2, d), optional
        `ends` of these points, or of data that they are a part of: all parts then have the same
        bounds. They may be on the CPU whatever the device of the points.
    weight_unit : float
        The unit of the weights, a power of two.
    statistics : ColumnStatistics, optional
        Sums over the points, if they are known.
    first_row : int
        The number of the first row in the data that these are a part of.
    n_clusters : int
        How many centers rows are compared with; decides how many threads small data are worth.
    notes : tuple of str
        What was recognised, converted and left out when they were read from a table.
    """

    points: Tensor
    sample_weight: Tensor | None = None
    leaf: int = LEAF
    given_origin: Tensor | None = None
    directions: bool = False
    scaling: Scaling | None = None
    names: tuple[str, ...] | None = None
    mapped: bool = False
    part: int | None = None
    known_ends: Tensor | None = None
    weight_unit: float = 1.0
    statistics: ColumnStatistics | None = None
    first_row: int = 0
    is_bent: bool = False
    given: Tensor | None = None
    n_clusters: int = 1
    notes: tuple[str, ...] = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Raise TypeError: other packages would read all rows, without their scaling."""
        raise TypeError(
            "only estimators of lloydformer accept blocks of lf.data.open_dataset; instead of a "
            "scaler in a pipeline use lf.data.open_dataset(..., scale=...), or pass .points.numpy()"
        )

    @cached_property
    def ends(self) -> Tensor:
        """Bounds of each column before scaling, (2, d): its extremes, or those of all data."""
        return column_min_max(self.points) if self.known_ends is None else self.known_ends

    @cached_property
    def origin(self) -> Tensor:
        if self.given_origin is not None:
            return self.given_origin
        if self.directions:
            return torch.zeros_like(self.points[0])
        return torch.from_numpy(self._sampled_origin).to(self.device)

    @cached_property
    def origin_on_host(self) -> np.ndarray:
        """The origin in float64."""
        if self.given_origin is not None or self.directions:
            return self.origin.cpu().double().numpy()
        return self._sampled_origin.astype(np.float64)

    @cached_property
    def _sampled_origin(self) -> np.ndarray:
        """The rounded median of a sample of the rows."""
        numbers, points = sample_numbers(self.n_rows), self.points.detach()
        if points.device.type == "cpu":  # NumPy takes rows in a tenth of the time of torch
            sample = torch.from_numpy(points.numpy().take(numbers, axis=0))
        else:
            sample = points[torch.from_numpy(numbers).to(points.device)].cpu()
        return sampled_origin(self._scale(sample).numpy())

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            n_rows=self.n_rows,
            n_features=self.n_features,
            dtype=self.dtype,
            device=self.device,
            leaf=self.leaf,
            part=self.part or self.leaf,
            origin=self.origin,
            scaling=self.scaling,
            weighted=self.sample_weight is not None,
            weight_unit=self.weight_unit,
        )

    @property
    def squared_norm_bound(self) -> float:
        """Upper bound of the squared norms after centering and scaling."""
        if self.directions:
            return 1.0
        with np.errstate(over="ignore"):  # infinity is an upper bound of the largest distances
            return float(np.square(self._corner).sum())

    @property
    def value_bound(self) -> float:
        """Upper bound of the absolute values after centering and scaling; above 0."""
        return 1.0 if self.directions else float(self._corner.max()) or 1.0

    @cached_property
    def _corner(self) -> np.ndarray:
        """Upper bounds of the columns' absolute values after centering and scaling."""
        ends = self._scale(self.ends).cpu().numpy()
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
        return self.to_rows(self.points[start:stop])

    def take(self, rows: Tensor) -> Tensor:
        return self.to_rows(self.points[rows]).points

    def read_all(self) -> Tensor:
        """Return a copy of all rows as `read` gives them: scaled, relative to the origin."""
        rows = torch.empty_like(self.points, memory_format=torch.contiguous_format)
        for start, stop in leaf_ranges(self.layout):  # bounds temporary memory
            rows[start:stop] = self.to_rows(self.points[start:stop]).points
        return rows

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> "TensorBlocks":
        """Return a copy of some rows, in the same coordinates."""
        rows = rows.to(self.device)
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return self._with_points(self.points[rows], weights, mapped=False)

    def slice_rows(self, start: int, stop: int) -> "TensorBlocks":
        """Return the rows [start, stop) without a copy, in the same coordinates."""
        points, weights = self.points[start:stop], self.weights(start, stop)
        return self._with_points(points, weights, first_row=self.first_row + start)

    def _with_points(self, points: Tensor, weights: Tensor | None, **more: Any) -> "TensorBlocks":
        """Return other points with this origin; sums over all points are not theirs."""
        return replace(
            self,
            points=points,
            sample_weight=weights,
            given_origin=self.origin,
            known_ends=self.ends,
            statistics=None,
            given=None,
            **more,
        )

    def to_rows(self, points: Tensor) -> DenseRows:
        """Return points as rows: scaled, then less the origin, or divided by their norms."""
        if self.directions:
            return DenseRows(self._scale(points), None).directions()
        return DenseRows(self._scale(points), self.origin)

    def _scale(self, points: Tensor) -> Tensor:
        if self.scaling is None:
            return points
        return self.scaling.apply(points) if self.is_bent else self.scaling.from_data(points)

    @cached_property
    def bent(self) -> "TensorBlocks":
        """These rows with the curves of the scaling applied; itself if there are none. Cached."""
        if self.is_bent or self.scaling is None or self.scaling.curves is None:
            return self
        points = self.scaling.bend(self.points)
        ends = None if self.known_ends is None else self.scaling.bend(self.known_ends)
        return replace(
            self,
            points=points,
            known_ends=ends,
            statistics=None,
            mapped=False,
            is_bent=True,
            given=self.points,
        )

    @property
    def data_points(self) -> Tensor:
        """The points in the units of the data."""
        return self.points if self.given is None else self.given
