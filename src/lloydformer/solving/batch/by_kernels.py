"""Many problems by the kernels of the native engine: Lloyd's and spherical k-means on the CPU."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.engines.native import instruction_set
from lloydformer.engines.native.installed import kernels
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.numerics.directions import directions
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.batch.outcome import BatchOutcome
from lloydformer.solving.batch.seeding import random_rows
from lloydformer.solving.rules import Rules


def known(plan: Plan, x: Tensor) -> bool:
    """Is there a kernel for this plan on these points?"""
    return isinstance(plan, MeansPlan) and x.device.type == "cpu" and instruction_set() is not None


@dataclass(frozen=True)
class ByKernels:
    """Problems (b, n, d), each solved by one thread from its start to its end."""

    plan: Plan
    x: Float[Tensor, "b n d"]
    weights: Float[Tensor, "b n"] | None
    rules: Rules
    rng: np.random.RandomState

    def from_array(self, starts: Float[Tensor, "b k d"]) -> BatchOutcome:
        starts = starts.double()
        return self._solve(directions("init", starts) if self.plan.directions else starts.clone())

    def from_random_rows(self, n_clusters: int) -> BatchOutcome:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2]))
        weights = torch.ones_like(uniform) if self.weights is None else self.weights
        rows = random_rows(weights, n_clusters, uniform).unsqueeze(-1)
        return self.from_array(self.x.gather(1, rows.expand(-1, -1, self.x.shape[2])))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> BatchOutcome:
        """From the seeds of greedy k-means++ that these draws from [0, 1) give."""
        (b, k, _), d = draws.shape, self.x.shape[2]
        return self._solve(torch.empty(b, k, d, dtype=torch.float64), draws)

    def _solve(self, centers: Tensor, draws: Tensor | None = None) -> BatchOutcome:
        if self.plan.directions and bool((self.x == 0).all(dim=-1).any()):
            raise ValueError("points: found a row of zeros, which has no direction; use another")
        b, n, _ = self.x.shape
        labels, n_iter = torch.empty(b, n, dtype=torch.int32), torch.empty(b, dtype=torch.int64)
        inertia = torch.empty(b, dtype=torch.float64)
        given = (None if t is None else t.contiguous().numpy() for t in (self.weights, draws))
        kernels().solve(
            self.x.contiguous().numpy(), *given, self.rules.tol, self.rules.max_iter,
            self.plan.directions,
            centers.numpy(), labels.numpy(), inertia.numpy(), n_iter.numpy(), allowed_threads(),
        )  # fmt: skip
        return BatchOutcome(centers, labels.long(), inertia, n_iter, trimmed=None)
