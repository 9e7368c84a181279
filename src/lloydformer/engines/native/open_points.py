"""Points that the kernels have opened, and what is remembered of them between calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.state import PointState


@dataclass
class OpenPoints:
    """The kernels for some points, with the state of the session that owns them.

    Attributes
    ----------
    kernels : object
        Opened for these points.
    blocks : TensorBlocks or SparseBlocks
        The points.
    state : PointState
        One array for each column of the state of the points.
    fresh : bool
        No iteration has run since `forget`.
    leaf_masses : Tensor or None
        The sums of w d^2 of the leaves, if the last fold has computed them.
    """

    kernels: Any
    blocks: TensorBlocks | SparseBlocks
    state: PointState
    fresh: bool = True
    leaf_masses: Tensor | None = None

    @property
    def layout(self) -> Layout:
        return self.blocks.layout

    def array(self, name: str) -> np.ndarray:
        """Return a column of the state, which a kernel may write."""
        return self.state.column(name).numpy()

    def run(
        self,
        kernel: str,
        columns: tuple[str, ...] = (),
        out: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> tuple[Any, ...]:
        """Call a kernel.

        Parameters
        ----------
        kernel : str
            Its name, which is that of the fold or the task that it runs.
        columns : tuple of str
            Columns of the state that it reads or writes.
        out : mapping, optional
            Names and shapes of the sums that it computes, in float64.
        **arguments
            All others. Tensors are passed as arrays, without a copy if they are contiguous: then
            the kernel may write to them as well.

        Returns
        -------
        tuple
            The return value of the kernel, then the tensors of `out`, in their order.
        """
        # Python takes about 13 of the 18 µs of a small fold: one loop, no call per argument.
        for name, value in arguments.items():
            if isinstance(value, Tensor):
                arguments[name] = value.contiguous().numpy()
        for name in columns:
            arguments[name] = self.state.column(name).numpy()
        results = []
        for name, shape in (out or {}).items():
            result = torch.zeros(shape, dtype=torch.float64)
            arguments[name] = result.numpy()
            results.append(result)
        return self.kernels.run(kernel, **arguments), *results
