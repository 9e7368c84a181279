"""The best centers of plans that draw them, for a batch of problems."""

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.contract import Placed
from lloydformer.solving.rules import is_better


class BestSeen:
    """Remembers the centers with the lowest objective, and how long ago they were drawn.

    A step knows the objective of the centers that it began with: those the step before has drawn.

    Parameters
    ----------
    centers : Tensor of shape (b, k, d)
        The start.
    rows : Tensor of shape (b, k) or None
        The data rows that the start is. If it is not made of rows (None), it does not count.

    Attributes
    ----------
    objective : ndarray of shape (b,)
        The lowest one so far.
    centers, rows : Tensor
        The centers that have it, and their rows.
    waited : ndarray of shape (b,)
        Iterations since then.
    last_rows : Tensor or None
        The rows of the last draw.
    """

    def __init__(self, centers: Tensor, rows: Tensor | None) -> None:
        b, k, _ = centers.shape
        self.objective = np.full(b, np.inf)
        self.waited = np.zeros(b, dtype=np.int64)
        self.centers = self._drawn = centers
        self.rows = torch.zeros((b, k), dtype=torch.long, device=centers.device)
        self.last_rows = rows

    def see(self, going: Tensor, objective: np.ndarray, update: Placed) -> None:
        """After a step of the problems `going` (b',): objectives of the last draw, a new draw."""
        active = going.cpu().numpy()
        self.waited[active] += 1
        if self.last_rows is None:  # the start is no draw
            rows = torch.zeros_like(self.rows)
        else:
            self._keep_better(active, objective, going)
            rows = self.last_rows.clone()
        drawn = self._drawn.clone()
        assert update.rows is not None
        drawn[going], rows[going] = update.centers, update.rows
        self._drawn, self.last_rows = drawn, rows

    def _keep_better(self, active: np.ndarray, objective: np.ndarray, going: Tensor) -> None:
        better = is_better(objective, self.objective[active])
        improved = active[better]
        self.objective[improved], self.waited[improved] = objective[better], 0
        mask = torch.zeros(len(self.centers), dtype=torch.bool, device=going.device)
        mask[going[torch.from_numpy(better).to(going.device)]] = True
        self.centers = torch.where(mask[:, None, None], self._drawn, self.centers)
        assert self.last_rows is not None
        self.rows = torch.where(mask[:, None], self.last_rows, self.rows)
