"""Many problems as tensors (b, n, d), on any device: every recipe that lowers."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.engines.thread_pool import single_core_pool, torch_threads
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.scaling import directions, middle
from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.contract import Plan, Step
from lloydformer.solving.batch.steps import (
    Assigned,
    DenseProblems,
    assign,
    cost,
    own_distances,
    scores,
)
from lloydformer.solving.iterations import BestCenters, PlanLoop
from lloydformer.solving.rules import Rules, is_better


@dataclass(frozen=True)
class BatchOutcome:
    """The results of b problems, in float64.

    trimmed: points that are left out; None in plans that do not trim.
    """

    centers: Float[Tensor, "b k d"]
    labels: Int[Tensor, "b n"]
    inertia: Float[Tensor, " b"]
    n_iter: Int[Tensor, " b"]
    trimmed: Bool[Tensor, "b n"] | None

    def choose_better(self, other: "BatchOutcome") -> "BatchOutcome":
        """Return for each problem the other outcome if it is better, else this one."""
        wins = is_better(other.inertia, self.inertia)

        def choose(a: Any, b: Any) -> Any:
            if a is None:
                return None
            return torch.where(wins.view(-1, *[1] * (a.ndim - 1)), b, a)

        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return BatchOutcome(*(choose(a, b) for a, b in pairs))


def join_outcomes(parts: list[BatchOutcome]) -> BatchOutcome:
    """Join the outcomes of neighbouring problems."""

    def cat(column: Any) -> Any:
        return None if column[0] is None else torch.cat(column)

    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return BatchOutcome(*(cat(column) for column in columns))


@dataclass
class TensorProblems:
    """Problems in memory, with the labels of their last iteration."""

    plan: Plan
    data: DenseProblems
    last: Assigned | None = field(default=None)

    def step(self, centers: Float[Tensor, "b k d"], iteration: int) -> Step:
        before = self.last
        self.last = now = assign(self.plan, self.data, centers, iteration)
        # Points with weight whose label or trimming differs from the iteration before; first all.
        changed = self.data.weights > 0
        if before is not None:
            differs = before.labels != now.labels
            if before.trimmed is not None and now.trimmed is not None:
                differs = differs | (before.trimmed != now.trimmed)
            changed = differs & changed
        return Step(now.update, now.objective, changed.sum(dim=1))

    def farthest(self, centers: Float[Tensor, "b k d"], count: int) -> FarthestPoints:
        assert self.last is not None
        labels, weights = self.last.labels, self.data.weights
        away = own_distances(self.data, centers, labels).masked_fill(weights <= 0, -1.0)
        rows = away.sort(dim=1, descending=True, stable=True).indices[:, :count]
        away, labels, weights = (v.gather(1, rows) for v in (away, labels, weights))
        return FarthestPoints(away, rows, labels, self.data.take(rows), weights)

    def only(self, places: Int[Tensor, " c"]) -> "TensorProblems":
        last = self.last
        assert last is not None
        trimmed = None if last.trimmed is None else last.trimmed[places]
        kept = Assigned(last.update, last.objective[places], last.labels[places], trimmed)
        return TensorProblems(self.plan, self.data[places], kept)

    def rows_of(self, centers: Float[Tensor, "b k d"]) -> Int[Tensor, "b k"] | None:
        """Return the rows that equal these centers; None if one is not a row of its problem."""
        rows = (scores(self.data, centers) + self.data.squares).argmin(dim=1)
        return rows if torch.equal(self.data.take(rows), centers) else None


def random_rows(
    weights: Float[Tensor, "b n"], n_clusters: int, uniform: Float[Tensor, "b n"]
) -> Int[Tensor, "b k"]:
    """Draw k different rows of each problem in proportion to weight: the largest of u^(1/w)."""
    # As logarithms: u^(1/w) underflows for small weights. Efraimidis and Spirakis, 2006.
    keys = uniform.log() / weights
    keys = keys.clamp(min=torch.finfo(keys.dtype).min).masked_fill(weights == 0, -torch.inf)
    return keys.topk(n_clusters, dim=1).indices


def kmeans_plusplus(
    problems: DenseProblems, draws: Float[Tensor, "b k trials"]
) -> Int[Tensor, "b k"]:
    """Return the rows of seeds by greedy k-means++: each is the best of some candidates.

    draws: fractions in [0, 1) that the candidates are drawn by.
    """
    n, draws = problems.points.shape[1], draws.to(problems.points.device)
    rows = _quantiles(problems.weights, draws[:, 0, :1])
    nearest = _distances(problems, rows)[..., 0]
    for j in range(1, draws.shape[1]):
        masses = nearest * problems.weights
        left = masses.sum(dim=1, keepdim=True) > 0  # else every point with weight is a seed already
        masses = torch.where(left, masses, problems.weights)
        candidates = _quantiles(masses, draws[:, j])  # (b, trials)
        away = torch.minimum(_distances(problems, candidates), nearest.unsqueeze(-1))
        best = (away * problems.weights.unsqueeze(-1)).sum(dim=1).argmin(dim=1)
        rows = torch.cat([rows, candidates.gather(1, best[:, None])], dim=1)
        nearest = away.gather(2, best[:, None, None].expand(-1, n, 1))[..., 0]
    return rows


def _quantiles(masses: Float[Tensor, "b n"], draws: Float[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    """Return the rows at which the running sum of the masses reaches these fractions of it."""
    reached = masses.cumsum(dim=1)
    whole = reached[:, -1:].contiguous()
    last = torch.searchsorted(reached, whole)  # rounding must not lead beyond it
    return torch.searchsorted(reached, draws * whole, right=True).minimum(last)


def _distances(problems: DenseProblems, rows: Int[Tensor, "b t"]) -> Float[Tensor, "b n t"]:
    """Return the squared distances of all points to those in these rows."""
    return (scores(problems, problems.take(rows)) + problems.squares).clamp(min=0)


# Scores of a group of problems that one thread holds at a time: 512 KiB in float64, which stays in
# the cache of a core. Chosen by hand.
_SCORES = 1 << 16


@dataclass(frozen=True)
class ByTensors:
    """Problems (b, n, d) around their middles, in float64.

    seeds: random seed of each problem, for plans that draw. unit: unit of each problem's weights; 1
    by default.
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
        # Masked points must not move the middle: a point with weight takes their place.
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
        """Solve from the seeds of greedy k-means++ that these draws from [0, 1) give."""
        return self._from(self.data.take(kmeans_plusplus(self.data, draws)))

    def _from(self, starts: Tensor) -> BatchOutcome:
        """Solve groups of neighbouring problems, each by one thread on the CPU."""
        # A group for each thread, instead of threads within operations, which are too small to gain
        # from them. A GPU takes all problems at once: each operation is a launch.
        b, n, _ = self.data.points.shape
        size = max(1, _SCORES // (n * starts.shape[1])) if starts.device.type == "cpu" else b
        groups = torch.split(torch.arange(b, device=starts.device), size)
        with single_core_pool(torch_threads()) as pool:
            parts = pool.map(lambda chosen: self._solve(starts, chosen), groups)
            outcome = join_outcomes(list(parts))
        return replace(outcome, centers=outcome.centers + self.origin.double().unsqueeze(1))

    def _solve(self, starts: Tensor, chosen: Tensor) -> BatchOutcome:
        data, start = self.data[chosen], starts[chosen]
        problems = TensorProblems(self.plan, data)
        best = BestCenters(start, problems.rows_of(start)) if self.plan.draws_centers else None
        tolerance = self._tolerance[chosen.cpu().numpy()]
        loop = PlanLoop(self.plan, problems, self.rules, tolerance, start, best=best)
        while not loop.done:
            loop.advance()
        # The last draw has not been measured, so it is compared with the best one here.
        last = self._finish(data, loop.centers, loop.n_iter)
        if best is None:
            return last
        return last.choose_better(self._finish(data, best.centers, loop.n_iter))

    def _finish(self, data: DenseProblems, centers: Tensor, n_iter: np.ndarray) -> BatchOutcome:
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
