"""Many problems by one kernel on a GPU: Lloyd's algorithm, small problems without weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.numerics.checks import allowed_spans, check_finite, check_range
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.batch.by_tensors import ByTensors
from lloydformer.solving.batch.outcome import BatchOutcome
from lloydformer.solving.batch.seeding import kmeans_plusplus, random_rows
from lloydformer.solving.rules import Rules


def known_on_gpu(plan: Plan, x: Tensor, n_clusters: int) -> bool:
    """Is there a kernel for this plan on these points, if they have no weights?"""
    if x.device.type != "cuda" or not isinstance(plan, MeansPlan) or plan.directions:
        return False
    from lloydformer.engines.cuda.batch import fits

    return fits(x, n_clusters)


@dataclass(frozen=True)
class ByCuda:
    """Problems (b, n, d), each solved by one block of threads from its start to its end.

    The kernel finds out whether values are finite and in range, so nobody else reads the points.
    """

    plan: Plan
    x: Float[Tensor, "b n d"]
    rules: Rules
    rng: np.random.RandomState
    seeds: Int[Tensor, " b"]

    @cached_property
    def by_tensors(self) -> ByTensors:
        """The same problems, for seeds and for what the kernel declines."""
        ones = torch.ones(self.x.shape[:2], dtype=torch.float64, device=self.x.device)
        return ByTensors(self.plan, self.x, ones, self.rules, self.rng, self.seeds)

    def from_array(self, starts: Float[Tensor, "b k d"]) -> BatchOutcome:
        from lloydformer.engines.cuda.batch import solve_batch

        starts, (_, n, d) = starts.to(self.x.device), self.x.shape
        rules, spans = self.rules, allowed_spans(self.x.dtype, d, n)
        solved = solve_batch(self.x, starts, rules.tol, rules.max_iter, spans)
        if solved is None:
            self._check()
            check_finite("init", starts)
            return self.by_tensors.from_array(starts)
        return BatchOutcome(*solved, trimmed=None)

    def from_random_rows(self, n_clusters: int) -> BatchOutcome:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2])).to(self.x.device)
        return self._from_rows(random_rows(torch.ones_like(uniform), n_clusters, uniform))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> BatchOutcome:
        """From the seeds of greedy k-means++ that these draws from [0, 1) give."""
        self._check()
        return self._from_rows(kmeans_plusplus(self.by_tensors.data, draws))

    def _from_rows(self, rows: Int[Tensor, "b k"]) -> BatchOutcome:
        places = rows.unsqueeze(-1).expand(-1, -1, self.x.shape[2])
        return self.from_array(self.x.gather(1, places))

    def _check(self) -> None:
        """Raise `ValueError` for values that are not finite or out of range."""
        check_finite("points", self.x)
        check_range("points", self.x, self.x.shape[1])
