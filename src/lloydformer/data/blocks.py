"""Blocks: data that can be read again and again, a fixed range of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.extent import extent
from lloydformer.data.prefetch import ask_for
from lloydformer.data.rows import DenseRows, Rows, SparseRows
from lloydformer.data.scaling import Scaling
from lloydformer.numerics.origin import middle

LEAF = 8192
"""Rows in a leaf block on the CPU: its scores stay in cache."""


@runtime_checkable
class Blocks(Protocol):
    """Re-readable data in fixed leaf blocks, numbered by their global rows.

    `origin` is a point that rows are seen from. `read` may be called from several threads.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def leaf(self) -> int: ...

    @property
    def origin(self) -> Tensor: ...

    @property
    def mapped(self) -> bool:
        """Do rows come from a disk, so that it pays to ask for them early?"""
        ...

    def expect(self, start: int, stop: int) -> None:
        """These rows will be read soon. Called from a thread of its own, if they are mapped."""
        ...

    def read(self, start: int, stop: int) -> Rows: ...

    def take(self, rows: Tensor) -> Tensor:
        """Some rows by their global numbers, dense, relative to the origin."""
        ...

    def weights(self, start: int, stop: int) -> Tensor | None: ...

    def place(self, centers: Tensor) -> Tensor:
        """Centers as a user has them, seen as the rows are seen, in float64."""
        ...

    def returned(self, centers: Tensor) -> Tensor:
        """Centers seen as the rows are, as a user will have them: dtype and units of the data."""
        ...


def count_weighted(data: Blocks) -> int:
    """How many rows have weight."""
    leaves = ((stop - start, data.weights(start, stop)) for start, stop in ranges(data))
    return sum(count if w is None else int(torch.count_nonzero(w > 0)) for count, w in leaves)


def ranges(data: Blocks) -> Iterator[tuple[int, int]]:
    """The leaf blocks, in row order."""
    for start in range(0, data.n_rows, data.leaf):
        yield start, min(start + data.leaf, data.n_rows)


@dataclass(frozen=True)
class TensorBlocks:
    """A tensor (n, d) on any device, sliced without copying."""

    points: Tensor
    sample_weight: Tensor | None = None
    leaf: int = LEAF
    seen_from: Tensor | None = None
    """The origin; by default the middle of the data, or zero for directions."""
    directions: bool = False
    scaling: Scaling | None = None
    """Rows are scaled as they are read; users have centers in the original units."""
    names: tuple[str, ...] | None = None
    mapped: bool = False
    known_ends: Tensor | None = None
    """`ends` of other blocks over the same points, so that they are not computed again."""

    @cached_property
    def ends(self) -> Tensor:
        """The smallest and the largest value of each column as it is in the file, (2, d)."""
        return extent(self.points) if self.known_ends is None else self.known_ends

    @cached_property
    def origin(self) -> Tensor:
        if self.seen_from is not None:
            return self.seen_from
        if self.directions:
            return torch.zeros_like(self.points[0])
        return middle(self._scaled(self.ends))

    @property
    def farthest(self) -> float:
        """A number that no |x|^2 is above, rows being seen as they are."""
        if self.directions:
            return 1.0
        corner = self._seen(self.ends).points.double().abs().amax(dim=0)
        return corner.square().sum().item()

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

    def expect(self, start: int, stop: int) -> None:
        ask_for(self.points[start:stop])

    def read(self, start: int, stop: int) -> Rows:
        return self._seen(self.points[start:stop])

    def take(self, rows: Tensor) -> Tensor:
        return self._seen(self.points[rows]).points

    def place(self, centers: Tensor) -> Tensor:
        return self._scaled(centers.to(self.device).double()) - self.origin.double()

    def returned(self, centers: Tensor) -> Tensor:
        placed = centers + self.origin.double()
        return (placed if self.scaling is None else self.scaling.undo(placed)).to(self.dtype)

    def _seen(self, points: Tensor) -> DenseRows:
        if self.directions:
            return DenseRows(self._scaled(points), None).directions()
        return DenseRows(self._scaled(points), self.origin)

    def _scaled(self, points: Tensor) -> Tensor:
        return points if self.scaling is None else self.scaling.apply(points)

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]


@dataclass(frozen=True)
class SparseBlocks:
    """A CSR matrix, which stays sparse."""

    matrix: sparse.csr_matrix | sparse.csr_array
    sample_weight: Tensor | None = None
    leaf: int = LEAF
    directions: bool = False
    mapped: ClassVar[bool] = False

    def expect(self, start: int, stop: int) -> None:
        """A matrix is in memory."""

    @property
    def n_rows(self) -> int:
        return self.matrix.shape[0]

    @property
    def n_features(self) -> int:
        return self.matrix.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.matrix.dtype == "float32" else torch.float64

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def origin(self) -> Tensor:
        return torch.zeros(self.n_features, dtype=self.dtype)

    def read(self, start: int, stop: int) -> Rows:
        rows = SparseRows(self.matrix[start:stop])
        return rows.directions() if self.directions else rows

    def place(self, centers: Tensor) -> Tensor:
        return centers.double()

    def returned(self, centers: Tensor) -> Tensor:
        return centers.to(self.dtype)

    def take(self, rows: Tensor) -> Tensor:
        taken = SparseRows(self.matrix[rows.numpy()])
        chosen = taken.directions() if self.directions else taken
        return chosen.take(torch.arange(len(rows)))

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]
