"""What every part must know of the data as a whole, to be opened as a part of them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.native.engine import Native
from lloydformer.engines.native.folds import CHANGES, FOLDS, KernelFold
from lloydformer.plans.assign import Nearest
from lloydformer.plans.session import Fold


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of a part, as they travel.

    Attributes
    ----------
    first_row : int
        The number of the first one among all rows; a multiple of the leaf.
    points : ndarray or Tensor of shape (m, d)
        In the units of the user and the precision of the layout, row by row.
    weights : ndarray or Tensor of shape (m,) or None
        In units of `Layout.weight_unit`, float64.
    """

    first_row: int
    points: np.ndarray | Tensor
    weights: np.ndarray | Tensor | None = None


@dataclass(frozen=True)
class Opening:
    """How parts are opened: a small value that can be sent.

    Attributes
    ----------
    layout : Layout
        Of all rows.
    ends : Tensor of shape (2, d)
        The smallest and the largest value of each column of all rows, in the units of the user.
    directions : bool
        Is each row divided by its norm when it is read?
    engine : {"native", "chunked"}
        What opens a part.
    single : bool
        Are all rows one part? Then its session runs whole tasks as well.
    """

    layout: Layout
    ends: Tensor
    directions: bool
    engine: str
    single: bool = False

    @classmethod
    def of(cls, blocks: TensorBlocks, engine: str, *, single: bool) -> "Opening":
        """For the parts of these blocks."""
        return cls(blocks.layout, blocks.ends, blocks.directions, engine, single)

    def blocks(self, rows: PartRows) -> TensorBlocks:
        """The rows of a part as blocks."""
        layout, weights = self.layout, rows.weights
        return TensorBlocks(
            torch.as_tensor(rows.points), None if weights is None else torch.as_tensor(weights),
            layout.leaf, layout.origin, self.directions, layout.scaling, part=layout.part,
            known_ends=self.ends, weight_unit=layout.weight_unit, first_row=rows.first_row,
        )  # fmt: skip

    def few(self, points: Tensor, weights: Tensor | None) -> TensorBlocks:
        """Some rows in this process as blocks, in the same coordinates."""
        return self.blocks(PartRows(0, points, weights))

    def engine_with(self, n_threads: int) -> Native | Chunked:
        """The engine that opens a part."""
        return Native(n_threads) if self.engine == "native" else Chunked(n_threads)

    def kernel(self, fold: Fold) -> KernelFold | None:
        """The kernel that runs a fold over a part; None: the plain fold runs."""
        if self.engine != "native":
            return None
        return CHANGES if type(fold) is Nearest else FOLDS.get(type(fold))
