"""Many problems by one kernel: Lloyd's and spherical k-means on the CPU, Lloyd's on a GPU."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.engines.native import instruction_set
from lloydformer.engines.native.installed import kernels
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.checks import allowed_spans, check_finite, check_range
from lloydformer.numerics.scaling import directions
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.batch.by_tensors import (
    BatchOutcome,
    ByTensors,
    kmeans_plusplus,
    random_rows,
)
from lloydformer.solving.rules import Rules


def has_cpu_kernel(plan: Plan, x: Tensor) -> bool:
    """True if there is a kernel for this plan on these points."""
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
        # A copy: the kernel writes the centers over the starts.
        starts = starts.double()
        return self._solve(directions("init", starts) if self.plan.directions else starts.clone())

    def from_random_rows(self, n_clusters: int) -> BatchOutcome:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2]))
        weights = torch.ones_like(uniform) if self.weights is None else self.weights
        rows = random_rows(weights, n_clusters, uniform).unsqueeze(-1)
        return self.from_array(self.x.gather(1, rows.expand(-1, -1, self.x.shape[2])))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> BatchOutcome:
        """Solve from the seeds of greedy k-means++ that these draws from [0, 1) give."""
        (b, k, _), d = draws.shape, self.x.shape[2]
        return self._solve(torch.empty(b, k, d, dtype=torch.float64), draws)

    def _solve(self, centers: Tensor, draws: Tensor | None = None) -> BatchOutcome:
        if self.plan.directions and bool((self.x == 0).all(dim=-1).any()):
            raise ValueError("points: found a row of zeros, which has no direction; use another")
        # The kernel writes into these arrays; centers are the starts, or empty if it draws seeds.
        b, n, _ = self.x.shape
        labels, n_iter = torch.empty(b, n, dtype=torch.int32), torch.empty(b, dtype=torch.int64)
        inertia = torch.empty(b, dtype=torch.float64)
        given = (None if t is None else t.contiguous().numpy() for t in (self.weights, draws))
        results = (result.numpy() for result in (centers, labels, inertia, n_iter))
        settings = (self.rules.tol, self.rules.max_iter, self.plan.directions)
        kernels().solve(self.x.contiguous().numpy(), *given, *settings, *results, allowed_threads())
        return BatchOutcome(centers, labels.long(), inertia, n_iter, trimmed=None)


def has_gpu_kernel(plan: Plan, x: Tensor, n_clusters: int) -> bool:
    """True if there is a kernel for this plan on these points, if they have no weights."""
    if x.device.type != "cuda" or not isinstance(plan, MeansPlan) or plan.directions:
        return False
    # Imported here: only data on a GPU need the CUDA engine and its compiler.
    from lloydformer.engines.cuda.batch import has_batch_kernel

    return has_batch_kernel(x, n_clusters)


@dataclass(frozen=True)
class ByCuda:
    """Problems (b, n, d), each solved by one block of threads from its start to its end.

    The kernel checks that values are finite and in range, so that the points are read once.
    """

    plan: Plan
    x: Float[Tensor, "b n d"]
    rules: Rules
    rng: np.random.RandomState
    seeds: Int[Tensor, " b"]

    @cached_property
    def by_tensors(self) -> ByTensors:
        """The problems as tensors: for seeds, and for values that the kernel declines."""
        ones = torch.ones(self.x.shape[:2], dtype=torch.float64, device=self.x.device)
        return ByTensors(self.plan, self.x, ones, self.rules, self.rng, self.seeds)

    def from_array(self, starts: Float[Tensor, "b k d"]) -> BatchOutcome:
        from lloydformer.engines.cuda.batch import solve_batch

        starts, (_, n, d) = starts.to(self.x.device), self.x.shape
        rules, spans = self.rules, allowed_spans(self.x.dtype, d, n)
        solved = solve_batch(self.x, starts, rules.tol, rules.max_iter, spans)
        if solved is None:
            # The kernel has found a value that is not finite or out of range: the checks raise the
            # error that belongs to it. If they pass, the problems are solved by tensors.
            self._check()
            check_finite("init", starts)
            return self.by_tensors.from_array(starts)
        return BatchOutcome(*solved, trimmed=None)

    def from_random_rows(self, n_clusters: int) -> BatchOutcome:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2])).to(self.x.device)
        return self._from_rows(random_rows(torch.ones_like(uniform), n_clusters, uniform))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> BatchOutcome:
        """Solve from the seeds of greedy k-means++ that these draws from [0, 1) give."""
        self._check()  # seeds read the points before the kernel can check them
        return self._from_rows(kmeans_plusplus(self.by_tensors.data, draws))

    def _from_rows(self, rows: Int[Tensor, "b k"]) -> BatchOutcome:
        places = rows.unsqueeze(-1).expand(-1, -1, self.x.shape[2])
        return self.from_array(self.x.gather(1, places))

    def _check(self) -> None:
        """Raise `ValueError` for values that are not finite or out of range."""
        check_finite("points", self.x)
        check_range("points", self.x, self.x.shape[1])
