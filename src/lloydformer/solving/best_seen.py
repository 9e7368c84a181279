"""The best centers of a plan that draws them, and how long ago they were seen."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from lloydformer.plans.contract import Step


@dataclass
class BestSeen:
    """A step tells the objective of the centers that the step before it drew."""

    objective: float = math.inf
    centers: Tensor | None = None
    rows: Tensor | None = None
    last_rows: Tensor | None = None
    waited: int = 0
    _drawn: tuple[Tensor, Tensor] | None = field(default=None, repr=False)

    def begin_with(self, centers: Tensor, rows: Tensor | None) -> None:
        """The start counts, too, if its centers are rows of the data."""
        if rows is not None:
            self._drawn, self.last_rows = (centers, rows), rows

    def see(self, step: Step, moved: Tensor) -> None:
        if step.rows is None:
            return
        self.waited += 1
        if self._drawn is not None and step.objective < self.objective:
            self.objective, self.waited = step.objective, 0
            self.centers, self.rows = self._drawn
        self._drawn, self.last_rows = (moved, step.rows), step.rows
