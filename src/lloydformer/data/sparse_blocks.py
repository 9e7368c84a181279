"""CSR matrices as blocks: sparse rows on the CPU, dense blocks on a GPU."""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.array_api import tensor_from_numpy
from lloydformer.data.layout import LEAF, Layout
from lloydformer.data.rows import DenseRows, Rows, SparseRows
from lloydformer.fork_safety import cached_property


@dataclass(frozen=True)
class SparseBlocks:
    """A CSR matrix, which stays sparse; the origin is zero, since centering would fill it.

    Precondition: `canonicalise_csr` has returned the matrix. Fields are those of `TensorBlocks`.
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
            n_rows=n_rows,
            n_features=n_features,
            dtype=dtype,
            device=torch.device("cpu"),
            leaf=self.leaf,
            part=self.part or self.leaf,
            origin=torch.zeros(n_features, dtype=dtype),
            scaling=None,
            weighted=self.sample_weight is not None,
            weight_unit=self.weight_unit,
        )

    def prefetch(self, start: int, stop: int) -> None:
        """Do nothing: the matrix is in memory."""

    def read(self, start: int, stop: int) -> Rows:
        rows = SparseRows(self.matrix[start:stop])
        return rows.directions() if self.directions else rows

    def take(self, rows: Tensor) -> Tensor:
        taken = SparseRows(self.matrix[rows.numpy()])
        chosen = taken.directions() if self.directions else taken
        return chosen.take(torch.arange(len(rows)))

    def zero_rows(self, start: int, stop: int) -> Tensor:
        """Return which of the rows [start, stop) hold no number but 0."""
        starts = self.matrix.indptr[start : stop + 1]
        values = self.matrix.data[starts[0] : starts[-1]]
        filled = starts[1:] > starts[:-1]
        if np.count_nonzero(values) < len(values):  # a row may have nothing but stored zeros
            filled = np.zeros(stop - start, dtype=bool)
            where = np.flatnonzero(values) + starts[0]
            filled[np.searchsorted(starts, where, side="right") - 1] = True
        return torch.from_numpy(np.flatnonzero(~filled) + start)

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> "SparseBlocks":
        """Return a copy of some rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, matrix=self.matrix[rows.cpu().numpy()], sample_weight=weights)


@dataclass(frozen=True, eq=False)
class SparseOnGpu(SparseBlocks):
    """A CSR matrix of which a GPU has a copy; blocks are filled in with zeros when they are read.

    A block has at most 2^27 numbers (`leaf_rows`). The matrix as a whole is never dense.

    Attributes
    ----------
    device : torch.device
        The GPU.
    """

    device: torch.device = field(kw_only=True)

    @staticmethod
    def bytes_for(matrix: sparse.csr_matrix | sparse.csr_array, leaf: int) -> int:
        """Return the bytes on the GPU: the copy, and a dense block in both precisions."""
        # Columns and starts of rows are int64 there, as torch indexes with it.
        copied = matrix.nnz * (8 + matrix.dtype.itemsize) + 8 * matrix.shape[0]
        block = min(leaf, matrix.shape[0]) * matrix.shape[1]
        return int(copied + block * (8 + matrix.dtype.itemsize))

    @cached_property
    def layout(self) -> Layout:
        on_host = super().layout
        return replace(on_host, device=self.device, origin=on_host.origin.to(self.device))

    @cached_property
    def ends(self) -> Tensor:
        return super().ends.to(self.device)

    @cached_property
    def _on_gpu(self) -> tuple[Tensor, Tensor, Tensor]:
        """Starts of the rows, columns and values, on the GPU."""
        matrix = self.matrix
        parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
        starts, columns, values = (tensor_from_numpy(part).to(self.device) for part in parts)
        return starts, columns, values

    def read(self, start: int, stop: int) -> Rows:
        starts, columns, values = self._on_gpu
        # From the host's copy: starts of the GPU would have to be waited for.
        first, last = self.matrix.indptr[[start, stop]].tolist()
        counts = starts[start : stop + 1].diff()
        lines = torch.arange(stop - start, device=self.device).repeat_interleave(counts)
        dense = values.new_zeros(stop - start, self.matrix.shape[1])
        dense[lines, columns[first:last]] = values[first:last]
        rows = DenseRows(dense, None)
        return rows.directions() if self.directions else rows

    def take(self, rows: Tensor) -> Tensor:
        return super().take(rows.cpu()).to(self.device)

    def zero_rows(self, start: int, stop: int) -> Tensor:
        return super().zero_rows(start, stop).to(self.device)


def canonicalise_csr(matrix: Any) -> Any:
    """Return a CSR matrix with sorted columns in each row, of which none is stored twice.

    Entries that are stored twice are added. The matrix itself is returned if it is so already;
    otherwise a copy. The given one is never changed.

    Raises
    ------
    ValueError
        If a row begins behind its end, or an index is not that of a column.
    """
    starts, n_columns = matrix.indptr, matrix.shape[1]
    inside = starts[0] == 0 and starts[-1] <= min(len(matrix.indices), len(matrix.data))
    if not inside or (starts[1:] < starts[:-1]).any():
        raise ValueError(
            "X: found a CSR matrix whose indptr does not ascend from 0 to the number "
            "of its entries; build it again"
        )
    used = matrix.indices[: starts[-1]]
    lowest, highest = np.min(used, initial=0), np.max(used, initial=0)
    if lowest < 0 or highest >= n_columns:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(
            f"X: found column {wrong} in a CSR matrix of {n_columns} columns; build it again"
        )
    if _forget_flags(copy(matrix)).has_canonical_format:
        return matrix
    fresh = _forget_flags(matrix.copy())
    fresh.sum_duplicates()
    return fresh


def _forget_flags(matrix: Any) -> Any:
    """Remove what SciPy remembers of a matrix: it is wrong if the arrays were written to since."""
    for name in ("_has_canonical_format", "_has_sorted_indices"):
        vars(matrix).pop(name, None)
    return matrix
