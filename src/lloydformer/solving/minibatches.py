"""The course of a fit over random mini-batches of rows, as scikit-learn's MiniBatchKMeans runs it.

Sculley, "Web-scale k-means clustering", WWW 2010.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.rows import DenseRows
from lloydformer.plans.contract import Plan
from lloydformer.plans.minibatch import batch_sums
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Descent, Outcome, Progress, Stopped
from lloydformer.solving.rules import settled
from lloydformer.solving.running_means import merged

_SAMPLE = 3
"""Batches in the sample that initial centers are taken from."""
_BETWEEN = 10
"""Batches after which starved centers are looked for."""


@dataclass(frozen=True)
class DrawnRows:
    """Random rows: without weights b different ones, with weights b rows drawn by weight.

    Attributes
    ----------
    n_rows : int
        Rows of the data.
    reached : ndarray of shape (n_rows,) or None
        Running sums of the weights.
    generator : numpy.random.Generator
        Source of the draws.
    """

    n_rows: int
    reached: np.ndarray | None
    generator: np.random.Generator

    @classmethod
    def by_weight(cls, weights: Tensor | None, n_rows: int, seed: int) -> "DrawnRows":
        reached = None if weights is None else np.cumsum(weights.cpu().numpy())
        return cls(n_rows, reached, np.random.default_rng(seed))

    @property
    def weight(self) -> float:
        """Of all rows, in the unit of the weights."""
        return float(self.n_rows if self.reached is None else self.reached[-1])

    def batch(self, size: int) -> Tensor:
        """The numbers (b,) of random rows."""
        if self.reached is None:
            return torch.from_numpy(
                self.generator.choice(self.n_rows, size, replace=False, shuffle=False)
            )
        at = np.sort(self.generator.random(size)) * self.reached[-1]
        found = np.searchsorted(self.reached, at, side="right")
        return torch.from_numpy(np.minimum(found, self._last).astype(np.int64))

    def sample(self, size: int) -> Tensor:
        """The numbers of different rows with weight, at most `size`."""
        if self.reached is None:
            return self.batch(min(size, self.n_rows))
        heavy = np.flatnonzero(np.diff(self.reached, prepend=0.0) > 0)
        return torch.from_numpy(
            self.generator.choice(heavy, min(size, len(heavy)), replace=False, shuffle=False)
        )

    @property
    def _last(self) -> int:
        """The last row with weight, for draws that rounding takes past the end."""
        assert self.reached is not None
        return int(np.searchsorted(self.reached, self.reached[-1], side="left"))


@dataclass(frozen=True)
class SampledStart:
    """The best of several starts, found and compared on a sample of the rows.

    Attributes
    ----------
    starts : callable
        Yields initial centers for a session.
    open_sample : callable
        Opens some rows as a session.
    plan : Plan
        Measures the starts.
    rows : DrawnRows
        Where the sample comes from.
    size : int
        Rows of the sample.
    """

    starts: Callable[[Session], Iterator[Tensor]]
    open_sample: Callable[[Tensor], AbstractContextManager[Session]]
    plan: Plan
    rows: DrawnRows
    size: int

    def __call__(self, session: Session) -> Iterator[Tensor]:
        with self.open_sample(self.rows.sample(self.size)) as few:
            found = list(self.starts(few))
            if len(found) == 1:
                yield found[0]
                return
            inertias = [self.plan.finish(few, c.to(few.layout.dtype)).inertia for c in found]
        yield found[int(np.argmin(inertias))]


@dataclass(frozen=True)
class MiniBatches:
    """Each batch moves the centers to the running means of the rows that went to them.

    Attributes
    ----------
    rows : DrawnRows
        Where batches come from.
    batch_size : int
        Rows of a batch.
    max_no_improvement : int or None
        Stop after so many batches in a row without a lower smoothed objective.
    reassignment_ratio : float
        Centers that have seen fewer rows than this fraction of the largest number move to rows of
        the batch, where that lowers the objective.
    from_rows : bool
        Initial centers are rows, so each of them stands for one row at least.
    """

    rows: DrawnRows
    batch_size: int
    max_no_improvement: int | None = 10
    reassignment_ratio: float = 0.01
    from_rows: bool = True

    def sample_size(self, n_clusters: int) -> int:
        """Rows that initial centers are taken from, as in scikit-learn."""
        return _SAMPLE * max(self.batch_size, n_clusters)

    def __call__(self, descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
        walk = _BatchWalk(self, descent, number, centers, centers.new_zeros(len(centers)), centers)
        try:
            walk.run()
        except KeyboardInterrupt:
            raise Stopped(walk.finish() if walk.n_steps else None) from None
        yield walk.finish()


@dataclass
class _BatchWalk:
    """One start, batch by batch; its fields are those after the last batch."""

    how: MiniBatches
    descent: Descent
    number: int
    centers: Tensor
    counts: Tensor
    at_pass: Tensor
    """The centers at the beginning of the pass."""
    n_steps: int = 0
    history: list[float] = field(default_factory=list)
    smoothed: float = np.inf
    lowest: float = np.inf
    waited: int = 0

    def run(self) -> None:
        n_rows, size = self.how.rows.n_rows, self.how.batch_size
        for step in range(self.descent.rules.max_iter * n_rows // size):
            objective = self._step()
            self.n_steps = step + 1
            ended = self.n_steps * size % n_rows < size  # a pass
            if self._no_better(objective) or (ended and self._settled()):
                return

    def finish(self) -> Outcome:
        return self.descent.finish(self.centers, self.history, n_steps=self.n_steps)

    def _step(self) -> float:
        """Move the centers; the objective of the old ones, estimated from the batch."""
        began, size = perf_counter(), self.how.batch_size
        plan, session = self.descent.plan, self.descent.session
        rows = self.how.rows.batch(size)
        update, away = batch_sums(
            session, rows.to(session.layout.device), self.centers.to(session.layout.dtype)
        )
        new, self.counts = merged(update, self.centers, self.counts, directions=plan.directions)
        if self.n_steps % _BETWEEN == _BETWEEN - 1:
            new = self._reassigned(new, rows)
        old, self.centers = self.centers, new
        objective = float(away) * (0.5 if plan.directions else 1.0) * self.how.rows.weight / size
        if self.n_steps * size >= len(self.history) * self.how.rows.n_rows:  # a pass begins
            self.history.append(objective)
        if self.descent.callback is not None:
            given = objective * session.layout.weight_unit
            shift, seconds = float((new - old).square().sum()), perf_counter() - began
            self.descent.callback(Progress(self.number, self.n_steps, given, shift, size, seconds))
        return objective

    def _no_better(self, objective: float) -> bool:
        """Has the smoothed objective not been lower for too long? The first batch is ignored."""
        if self.n_steps == 1:
            return False
        share = min(1.0, 2 * self.how.batch_size / (self.how.rows.n_rows + 1))
        first = self.smoothed == np.inf
        self.smoothed = objective if first else self.smoothed + share * (objective - self.smoothed)
        better = self.smoothed < self.lowest
        self.lowest = self.smoothed if better else self.lowest
        self.waited = 0 if better else self.waited + 1
        most = self.how.max_no_improvement
        return most is not None and self.waited >= most

    def _settled(self) -> bool:
        """At the end of a pass: have the centers hardly moved in it?"""
        shift = (self.centers - self.at_pass).square().sum()[None].cpu().numpy()
        self.at_pass = self.centers
        return bool(settled("shift", shift, shift, np.array([self.descent.tolerance]))[0])

    def _reassigned(self, centers: Tensor, rows: Tensor) -> Tensor:
        """The centers; starved ones moved to rows of the batch where that lowers the objective.

        Without center j, its rows would cost m_j |c_j - c_i|^2 more at the nearest other center i.
        """
        starved = self.counts < self.how.reassignment_ratio * self.counts.max()
        if len(centers) == 1 or not bool(starved.any()):
            return centers
        held = self.counts.clamp(min=float(self.how.from_rows))
        loss = held * _to_nearest_other(centers) / held.sum()  # of a row
        lost = torch.where(starved, loss, torch.inf).argsort(stable=True)[: int(starved.sum())]
        batch = _Proposals(self.descent.session, rows, centers, self.how.rows.generator)
        for j in lost[: len(rows) // 2].tolist():
            found = batch.propose()
            if found is None or found.gain <= float(loss[j]):
                break
            centers = centers.index_copy(0, lost.new_tensor([j]), batch.accept(found)[None])
            self.counts = self.counts.index_fill(0, lost.new_tensor([j]), float(found.near.sum()))
        return centers


@dataclass(frozen=True)
class _Proposal:
    """A new center at a row of the batch; `near`: the rows (b,) that would go to it."""

    gain: float
    near: Tensor
    apart: Tensor


class _Proposals:
    """New places for centers, drawn from a batch in proportion to squared distance."""

    def __init__(
        self, session: Session, rows: Tensor, centers: Tensor, generator: np.random.Generator
    ) -> None:
        self.points, self.generator = session.gather(rows.to(session.layout.device)), generator
        points = DenseRows(self.points, None)
        labels = points.scores(centers.to(self.points)).min(dim=1).indices
        self.away = points.squared_distances(centers.to(self.points), labels).double()

    def propose(self) -> _Proposal | None:
        """A row, and by how much the mean objective would fall; None if all rows are centers."""
        reached = self.away.cumsum(dim=0)
        if float(reached[-1]) == 0:
            return None
        at = torch.searchsorted(reached, reached[-1] * self.generator.random(), right=True)
        at = at.clamp(max=len(reached) - 1)
        apart = (self.points - self.points[at]).square().sum(dim=1)
        near = apart < self.away
        # the row itself was drawn because it is far: how often there is such a row, others tell
        gain = (torch.where(near, self.away - apart, 0.0).sum() - self.away[at]) / len(apart)
        return _Proposal(float(gain), near, apart.double())

    def accept(self, found: _Proposal) -> Tensor:
        """The mean of the rows that go to the new center."""
        self.away = torch.minimum(self.away, found.apart)
        return self.points[found.near].double().mean(dim=0)


def _to_nearest_other(centers: Tensor) -> Tensor:
    """The squared distance of each center to the nearest other one, (k,)."""
    return torch.cdist(centers, centers).fill_diagonal_(torch.inf).amin(dim=1).square()
