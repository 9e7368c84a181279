"""Points that the kernels have opened, and what they know of them between calls."""

from dataclasses import dataclass
from typing import Any

import numpy as np
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
        What is remembered of each point.
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
        """A column of the state, which a kernel may write."""
        return self.state.column(name).numpy()

    def columns(self, *names: str) -> dict[str, np.ndarray]:
        """Columns of the state as the arguments of a kernel."""
        return {name: self.array(name) for name in names}
