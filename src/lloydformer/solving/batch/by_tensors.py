"""Many problems as tensors, on any device: every recipe that lowers."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.engines.thread_pool import single_core_pool
from lloydformer.numerics.directions import directions
from lloydformer.numerics.origin import middle
from lloydformer.plans.contract import Plan
from lloydformer.solving.batch.outcome import BatchOutcome, joined
from lloydformer.solving.batch.problems import TensorProblems
from lloydformer.solving.batch.seeding import kmeans_plusplus, random_rows
from lloydformer.solving.batch.steps import DenseProblems, assign, cost, own_distances
from lloydformer.solving.best_seen import BestSeen
from lloydformer.solving.loop import Loop
from lloydformer.solving.rules import Rules

_SCORES = 1 << 16
"""Scores of a group of problems that one thread holds at a time."""


@dataclass(frozen=True)
class ByTensors:
    """Problems (b, n, d) around their middles, in float64.

    seeds: of each problem's noise, for plans that draw. unit: of each problem's weights; 1 by
    default.
    """

    plan: Plan
    x: Float[Tensor, "b n d"]
    weights: Float[Tensor, "b n"]
    rules: Rules
    rng: np.random.RandomState
    seeds: Int[Tensor, " b"]
    unit: Float[Tensor, " b"] | None = None

    @cached_property
    def origin(self) -> Tensor:
        if self.plan.directions:
            return torch.zeros_like(self.x[:, 0])
        first = (self.weights > 0).long().argmax(dim=1)
        there = self.x.gather(1, first[:, None, None].expand(-1, 1, self.x.shape[2]))
        return middle(torch.where((self.weights > 0).unsqueeze(-1), self.x, there))

    @cached_property
    def data(self) -> DenseProblems:
        points = self.x.double() - self.origin.double().unsqueeze(1)
        seen = directions("points", points) if self.plan.directions else points
        unit = torch.ones(len(seen)).double() if self.unit is None else self.unit
        seeds, unit = self.seeds.to(self.x.device), unit.to(self.x.device)
        return DenseProblems(seen, self.weights, seeds, unit)

    def from_array(self, starts: Float[Tensor, "b k d"]) -> BatchOutcome:
        placed = starts.to(self.x.device).double() - self.origin.double().unsqueeze(1)
        return self._from(directions("init", placed) if self.plan.directions else placed)

    def from_random_rows(self, n_clusters: int) -> BatchOutcome:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2])).to(self.x.device)
        return self._from(self.data.take(random_rows(self.weights, n_clusters, uniform)))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> BatchOutcome:
        """From the seeds of greedy k-means++ that these draws from [0, 1) give."""
        return self._from(self.data.take(kmeans_plusplus(self.data, draws)))

    def _from(self, starts: Tensor) -> BatchOutcome:
        """Groups of neighbouring problems, each solved by one thread on the CPU."""
        b, n, _ = self.data.points.shape
        size = max(1, _SCORES // (n * starts.shape[1])) if starts.device.type == "cpu" else b
        groups = torch.split(torch.arange(b, device=starts.device), size)
        with single_core_pool(torch.get_num_threads()) as pool:
            parts = pool.map(lambda chosen: self._solve(starts, chosen), groups)
            found = joined(list(parts))
        return replace(found, centers=found.centers + self.origin.double().unsqueeze(1))

    def _solve(self, starts: Tensor, chosen: Tensor) -> BatchOutcome:
        data, start = self.data[chosen], starts[chosen]
        problems = TensorProblems(self.plan, data)
        best = BestSeen(start, problems.rows_of(start)) if self.plan.draws else None
        tolerance = self._tolerance[chosen.cpu().numpy()]
        loop = Loop(self.plan, problems, self.rules, tolerance, start, best=best)
        loop.run()
        last = self._finished(data, loop.centers, loop.n_iter)
        if best is None:
            return last
        return last.or_better(self._finished(data, best.centers, loop.n_iter))

    def _finished(self, data: DenseProblems, centers: Tensor, n_iter: np.ndarray) -> BatchOutcome:
        """Label the points by the last centers."""
        last = assign(self.plan, data, centers, 0)
        away = own_distances(data, centers, last.labels)
        inertia = cost(self.plan, data, away, last.trimmed)
        counts = torch.from_numpy(n_iter).to(centers.device)
        return BatchOutcome(centers, last.labels, inertia, counts, last.trimmed)

    @cached_property
    def _tolerance(self) -> np.ndarray:
        """The tolerance of each problem: a fraction of its mean variance over the columns."""
        there = (self.weights > 0).double().unsqueeze(-1)
        count, points = there.sum(dim=1), self.data.points
        mean = (points * there).sum(dim=1) / count
        spread = ((points - mean.unsqueeze(1)) * there).square().sum(dim=1) / count
        return (self.rules.tol * spread.mean(dim=-1)).cpu().numpy()
