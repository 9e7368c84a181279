"""Points that the kernels have opened, and the state that is kept between calls of kernels."""

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
    """Some points, the kernels opened for them, and the state of the session that owns them.

    Attributes
    ----------
    kernels : object
        `Folds` or `CsrFolds` of the compiled module; it holds the address of the points.
    blocks : TensorBlocks or SparseBlocks
        The points.
    state : PointState
        One array for each column of the state of the points.
    fresh : bool
        True until the first k-means iteration after opening or `forget`. Passed to the kernels of
        k-means, which keep sums and bounds between iterations: they start again if it is True.
    leaf_masses : Tensor or None
        The sum of w d^2 over each leaf, if the last kernel was `NewSeed`, which computes it.
    """

    kernels: Any
    blocks: TensorBlocks | SparseBlocks
    state: PointState
    fresh: bool = True
    leaf_masses: Tensor | None = None

    @property
    def layout(self) -> Layout:
        return self.blocks.layout

    def forget(self) -> None:
        """Forget the labels of the last iteration."""
        self.state.forget()
        self.fresh = True

    def array(self, name: str) -> np.ndarray:
        """Return a column of the state as an array that shares its memory."""
        return self.state.column(name).numpy()

    def run(
        self,
        kernel: str,
        columns: tuple[str, ...] = (),
        out: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> tuple[Any, ...]:
        """Call a kernel; after an error the labels of the last iteration are forgotten.

        Parameters
        ----------
        kernel : str
            The name of the kernel, which is that of the fold or the task.
        columns : tuple of str
            Columns of the state that it reads or writes.
        out : mapping, optional
            Names and shapes of the tensors that it adds to, float64 and initially 0.
        **arguments
            The other arguments. Tensors are passed as arrays, without a copy if they are
            contiguous, so that a kernel can write its results to them.

        Returns
        -------
        tuple
            The return value of the kernel, then the tensors of `out`, in their order.
        """
        # Python takes about 13 of the 18 µs of a small fold: one loop, no call per argument.
        self.state.reclaim()
        self.leaf_masses = None
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
        try:
            return self.kernels.run(kernel, **arguments), *results
        except BaseException:
            self.forget()  # some labels are new ones, others are not
            raise
