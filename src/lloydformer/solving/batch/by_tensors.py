"""Many problems as tensors, on any device: every recipe that lowers."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.numerics.origin import middle
from lloydformer.plans.contract import Plan
from lloydformer.solving.batch.loop import Found, descend
from lloydformer.solving.batch.seeding import kmeans_plusplus, random_rows, take
from lloydformer.solving.batch.steps import Problems

_SCORES = 1 << 16
"""Scores of a group of problems that one thread holds at a time."""


def directions(name: str, rows: Tensor) -> Tensor:
    norms = rows.norm(dim=-1, keepdim=True)
    if bool((norms == 0).any()):
        raise ValueError(f"{name}: found a row of zeros, which has no direction; use another")
    return rows / norms


def trials(n_clusters: int) -> int:
    """Candidates for each seed of greedy k-means++, as in scikit-learn."""
    return 2 + int(math.log(n_clusters))


@dataclass(frozen=True)
class ByTensors:
    """Problems (b, n, d) around their middles, in float64."""

    plan: Plan
    x: Float[Tensor, "b n d"]
    weights: Float[Tensor, "b n"]
    rules: tuple[float, int]
    """The tolerance, in mean variances, and the number of iterations at most."""
    rng: np.random.RandomState
    seeds: Int[Tensor, " b"]
    """Of the noise, for plans that draw."""

    @cached_property
    def origin(self) -> Tensor:
        if self.plan.directions:
            return torch.zeros_like(self.x[:, 0])
        first = (self.weights > 0).long().argmax(dim=1)
        there = self.x.gather(1, first[:, None, None].expand(-1, 1, self.x.shape[2]))
        return middle(torch.where((self.weights > 0).unsqueeze(-1), self.x, there))

    @cached_property
    def problems(self) -> Problems:
        points = self.x.double() - self.origin.double().unsqueeze(1)
        seen = directions("points", points) if self.plan.directions else points
        return Problems(seen, self.weights, self.seeds.to(self.x.device))

    def from_array(self, starts: Float[Tensor, "b k d"]) -> Found:
        placed = starts.to(self.x.device).double() - self.origin.double().unsqueeze(1)
        return self._from(directions("init", placed) if self.plan.directions else placed)

    def from_random_rows(self, n_clusters: int) -> Found:
        uniform = torch.from_numpy(self.rng.uniform(size=self.x.shape[:2])).to(self.x.device)
        return self._from(take(self.problems, random_rows(self.weights, n_clusters, uniform)))

    def from_seeds(self, draws: Float[Tensor, "b k trials"]) -> Found:
        """From the seeds of greedy k-means++ that these draws from [0, 1) give."""
        return self._from(take(self.problems, kmeans_plusplus(self.problems, draws)))

    def _from(self, starts: Tensor) -> Found:
        found = _all_groups(self.plan, self.problems, starts, self._tolerance, self.rules[1])
        return replace(found, centers=found.centers + self.origin.double().unsqueeze(1))

    @cached_property
    def _tolerance(self) -> Tensor:
        """A fraction of the mean variance over the columns of each problem."""
        there = (self.weights > 0).double().unsqueeze(-1)
        count, points = there.sum(dim=1), self.problems.points
        mean = (points * there).sum(dim=1) / count
        spread = ((points - mean.unsqueeze(1)) * there).square().sum(dim=1) / count
        return self.rules[0] * spread.mean(dim=-1)


def _all_groups(
    plan: Plan, problems: Problems, starts: Tensor, tolerance: Tensor, max_iter: int
) -> Found:
    """Groups of neighbouring problems, each solved by one thread."""
    b, n, _ = problems.points.shape
    size = max(1, _SCORES // (n * starts.shape[1])) if starts.device.type == "cpu" else b
    groups = torch.split(torch.arange(b, device=starts.device), size)

    def solve(chosen: Tensor) -> Found:
        return descend(plan, problems[chosen], starts[chosen], tolerance[chosen], max_iter)

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(before) as pool:
            found = list(pool.map(solve, groups))
    finally:
        torch.set_num_threads(before)
    parts = zip(*(vars(f).values() for f in found), strict=True)
    return Found(*(torch.cat(part) for part in parts))
