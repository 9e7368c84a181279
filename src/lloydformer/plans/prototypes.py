r"""K-modes and k-prototypes: means of numbers, and modes of categories.

Rows are numbers and one-hot codes (`data/categories.py`). An iteration is that of k-means, and then
each block of codes of a center becomes the code of its largest mean: the most common category. For
given labels that minimises $\sum_i w_i (\lVert x_i - c \rVert^2 + 2 m_i)$, $m_i$ being the number
of categories in which row i differs from its center.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.plans.contract import Empties, FinalAssignment, Step, Sums
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.session import Session


@dataclass(frozen=True)
class PrototypesPlan(MeansPlan):
    """Each center moves to the means of its rows' numbers, and to the modes of their categories.

    Attributes
    ----------
    n_numbers : int
        Columns of numbers, which come first.
    sizes : tuple of int
        The sizes of the blocks of codes that follow.
    offset : float
        Added to the objective: what it lacks for categories that are unknown or ignored.
    """

    n_numbers: int = 0
    sizes: tuple[int, ...] = ()
    offset: float = 0.0
    # The farthest point also stays in its cluster: without it, that would have another mode.
    empties: ClassVar[Empties] = "copy"
    has_plain_inertia: ClassVar[bool] = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        centers = self._complete(centers)
        found = super().step(session, centers, iteration)
        assert isinstance(found.update, Sums)
        sums, masses = found.update.sums, found.update.masses
        new = [sums[:, : self.n_numbers] / masses[:, None]]
        blocks = torch.split(sums[:, self.n_numbers :], list(self.sizes), dim=1)
        olds = torch.split(centers[:, self.n_numbers :].double(), list(self.sizes), dim=1)
        for block, old in zip(blocks, olds, strict=True):
            code = torch.zeros_like(block).scatter_(1, block.argmax(dim=1, keepdim=True), 1.0)
            # a cluster all of whose values are missing keeps its category
            new.append(torch.where(block.sum(dim=1, keepdim=True) > 0, code, old))
        placed = torch.cat(new, dim=1)
        placed = torch.where(masses[:, None] > 0, placed, centers.double())
        update = Sums(placed * masses[:, None], masses)
        return Step(update, found.objective + self.offset, found.changed)

    def iterate(self, session: Session, centers: Tensor, tolerance: float, max_iter: int) -> None:
        return None  # no engine has the whole loop

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        returned = None if returned is None else self._complete(returned)
        found = super().finish(session, self._complete(centers), returned)
        cost = found.inertia + self.offset
        return FinalAssignment(cost, cost, found.masses)

    def _complete(self, centers: Tensor) -> Tensor:
        """Return centers with the first category in blocks without a code.

        A row with missing categories that fills an empty cluster has such blocks. Without a code a
        center would be nearer to all rows than one with any category.
        """
        parts = torch.split(centers, [self.n_numbers, *self.sizes], dim=1)
        found = [parts[0]]
        for block in parts[1:]:
            first = torch.zeros_like(block)
            first[:, 0] = 1.0
            found.append(torch.where(block.sum(dim=1, keepdim=True) > 0, block, first))
        return torch.cat(found, dim=1)
