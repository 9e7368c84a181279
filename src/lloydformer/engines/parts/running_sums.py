"""Sums of points by label from one iteration to the next, as the native engine keeps them.

Only points that change their label change sums. The same rules as in
`engines/native/kernels/totals.hpp`, for changes that come from all parts.
"""

import torch
from torch import Tensor

_LOST = 2.0**-20
"""Below this part of the largest weight that a cluster has had, its sums are added up again."""


class RunningSums:
    """Sums (k, d), masses (k,) and numbers of points (k,) of all clusters."""

    def __init__(self, n_clusters: int, n_features: int) -> None:
        self.sums = torch.zeros(n_clusters, n_features, dtype=torch.float64)
        self.masses = torch.zeros(n_clusters, dtype=torch.float64)
        self.counts = torch.zeros(n_clusters, dtype=torch.int64)
        self._peaks = torch.zeros(n_clusters, dtype=torch.float64)

    def add(self, sums: Tensor, masses: Tensor, counts: Tensor) -> None:
        """Add changes. A cluster without points becomes exactly zero, whatever rounding left."""
        self.counts = self.counts + counts
        empty = self.counts == 0
        self.sums = (self.sums + sums).masked_fill(empty[:, None], 0.0)
        self.masses = (self.masses + masses).masked_fill(empty, 0.0)
        self._peaks = torch.maximum(self._peaks, self.masses)

    @property
    def imprecise(self) -> bool:
        """Has rounding left too little of the sums of a cluster?"""
        return bool(((self.counts > 0) & (self.masses < _LOST * self._peaks)).any())
