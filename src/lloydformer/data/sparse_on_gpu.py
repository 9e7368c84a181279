"""A CSR matrix on a GPU, whose rows folds see as dense blocks."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.blocks import SparseBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.namespaces import unwarned
from lloydformer.data.rows import DenseRows, Rows


@dataclass(frozen=True, eq=False)
class SparseOnGpu(SparseBlocks):
    """A CSR matrix of which a GPU has a copy; blocks are filled in with zeros when they are read.

    A block has at most 2^27 numbers. The matrix as a whole is never dense.

    Attributes
    ----------
    device : torch.device
        The GPU.
    """

    device: torch.device = field(kw_only=True)

    @staticmethod
    def bytes_for(matrix: sparse.csr_matrix | sparse.csr_array, leaf: int) -> int:
        """Bytes on the GPU: the copy, and a dense block in both precisions."""
        copied = matrix.nnz * (8 + matrix.dtype.itemsize) + 8 * matrix.shape[0]
        block = min(leaf, matrix.shape[0]) * matrix.shape[1]
        return int(copied + block * (8 + matrix.dtype.itemsize))

    @cached_property
    def layout(self) -> Layout:
        here = super().layout
        return replace(here, device=self.device, origin=here.origin.to(self.device))

    @cached_property
    def ends(self) -> Tensor:
        return super().ends.to(self.device)

    @cached_property
    def _copy(self) -> tuple[Tensor, Tensor, Tensor]:
        """Starts of the rows, columns and values."""
        matrix = self.matrix
        parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
        starts, columns, values = (unwarned(part).to(self.device) for part in parts)
        return starts, columns, values

    def read(self, start: int, stop: int) -> Rows:
        starts, columns, values = self._copy
        own = starts[start : stop + 1]
        first, last = self.matrix.indptr[[start, stop]].tolist()
        lines = torch.arange(stop - start, device=self.device).repeat_interleave(own.diff())
        dense = values.new_zeros(stop - start, self.matrix.shape[1])
        dense[lines, columns[first:last]] = values[first:last]
        rows = DenseRows(dense, None)
        return rows.directions() if self.directions else rows

    def take(self, rows: Tensor) -> Tensor:
        return super().take(rows.cpu()).to(self.device)

    def subset(self, rows: Tensor) -> "SparseOnGpu":
        """A copy of some rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, matrix=self.matrix[rows.cpu().numpy()], sample_weight=weights)

    def zero_rows(self, start: int, stop: int) -> Tensor:
        return super().zero_rows(start, stop).to(self.device)
