"""A fit over random mini-batches of rows, as scikit-learn's MiniBatchKMeans runs it.

Sculley, "Web-scale k-means clustering", WWW 2010.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.rows import DenseRows
from lloydformer.plans.contract import Plan, Sums
from lloydformer.plans.minibatch import sum_minibatch
from lloydformer.plans.session import Session
from lloydformer.solving.rules import is_settled
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome

# Batches in the sample that initial centers are taken from, as in scikit-learn.
_SAMPLE = 3
# Batches after which starved centers are looked for, so that a new center has seen some rows before
# it is compared again. scikit-learn waits for 10 k rows.
_BETWEEN = 10


@dataclass(frozen=True)
class DrawnRows:
    """Random rows: without weights b different ones, with weights b rows drawn by weight.

    Attributes
    ----------
    n_rows : int
        Number of rows of the data.
    reached : ndarray of shape (n_rows,) or None
        Running sums of the weights; None if every row weighs 1.
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
        """The weight of all rows, in the unit of the weights."""
        return float(self.n_rows if self.reached is None else self.reached[-1])

    def batch(self, size: int) -> Tensor:
        """Draw the numbers (b,) of random rows."""
        if self.reached is None:
            return torch.from_numpy(
                self.generator.choice(self.n_rows, size, replace=False, shuffle=False)
            )
        # Sorted draws make the search, and the reading of rows from a file, sequential.
        at = np.sort(self.generator.random(size)) * self.reached[-1]
        found = np.searchsorted(self.reached, at, side="right")
        # Rounding may take a draw past the end: then it is the last row with weight.
        last = np.searchsorted(self.reached, self.reached[-1], side="left")
        return torch.from_numpy(np.minimum(found, last).astype(np.int64))

    def sample(self, size: int) -> Tensor:
        """Draw the numbers of different rows with weight, at most `size`."""
        if self.reached is None:
            return self.batch(min(size, self.n_rows))
        heavy = np.flatnonzero(np.diff(self.reached, prepend=0.0) > 0)
        return torch.from_numpy(
            self.generator.choice(heavy, min(size, len(heavy)), replace=False, shuffle=False)
        )


def merge_batch(
    update: Sums, centers: Tensor, counts: Tensor, *, directions: bool, unit: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Merge a batch into centers that are running means.

    A center does not move if its rows in the batch weigh nothing compared with those before.

    Parameters
    ----------
    update : Sums
        Sums and masses of the batch.
    centers : Tensor of shape (k, d)
        The centers before the batch.
    counts : Tensor of shape (k,)
        The weight of the rows that each center has seen before the batch.
    directions : bool
        Centers are unit vectors.
    unit : float
        Unit of the masses in `update`; `counts` are in units of 1.

    Returns
    -------
    tuple of Tensor
        Centers and counts after the batch.
    """
    parts = (update.sums, update.masses, centers, counts)
    sums, masses, old, so_far = (part.cpu().numpy() for part in parts)  # faster than torch on k d
    with np.errstate(all="ignore"):  # what is not finite is replaced below
        # Sums are divided by a power of two near the mass so far: mass times center could be
        # beyond float64, and the division by a power of two is exact.
        before = so_far / unit
        level = np.ldexp(1.0, np.maximum(np.frexp(before)[1] - 1, 0))
        before = before / level
        both = sums / level[:, None] + before[:, None] * old
        weights = masses / level + before
        if directions:  # by torch, as in `apply_update`: NumPy's norm may differ in the last bits
            weights = torch.from_numpy(both).norm(dim=1).numpy()
        met = (masses > 0) & np.isfinite(before)
        moves = met & (weights > 0)
        new = np.where(moves[:, None], both / weights[:, None], old)
        grown = np.where(met, weights * (unit * level), so_far)
    if not np.isfinite(grown).all():
        raise ValueError(
            "sample_weight: the weights of all rows so far sum to more than float64 can hold; "
            "divide them by a constant, in every batch"
        )
    return torch.from_numpy(new).to(centers), torch.from_numpy(grown).to(counts)


def best_on_sample(
    seeding: Callable[[Session], Iterator[Tensor]],
    open_sample: Callable[[Tensor], AbstractContextManager[Session]],
    plan: Plan,
    rows: Tensor,
) -> Iterator[Tensor]:
    """Yield the best of several starts, made and compared on a sample of the rows.

    Parameters
    ----------
    seeding : callable
        Yields initial centers for a session.
    open_sample : callable
        Opens some rows as a session.
    plan : Plan
        Measures the starts.
    rows : Tensor of shape (m,)
        The numbers of the rows of the sample.
    """
    with open_sample(rows) as sample:
        starts = list(seeding(sample))
        if len(starts) > 1:
            dtype = sample.layout.dtype
            inertias = [plan.finish(sample, c.to(dtype)).inertia for c in starts]
            starts = [starts[int(np.argmin(inertias))]]
    yield starts[0]


@dataclass(frozen=True)
class MiniBatches:
    """Each batch moves the centers to the running means of the rows that went to them.

    Attributes
    ----------
    rows : DrawnRows
        Draws the batches.
    batch_size : int
        Number of rows of a batch.
    max_no_improvement : int or None
        Stop after this number of batches in a row without a lower smoothed objective; None: never.
    reassignment_ratio : float
        Centers that have seen fewer rows than this fraction of the largest number move to rows of
        the batch, where that lowers the objective.
    from_rows : bool
        Initial centers are rows, so each of them has seen one row at least.
    """

    rows: DrawnRows
    batch_size: int
    max_no_improvement: int | None = 10
    reassignment_ratio: float = 0.01
    from_rows: bool = True
    n_starts: ClassVar[int] = 1

    def sample_size(self, n_clusters: int) -> int:
        """Return the number of rows that initial centers are taken from, as in scikit-learn."""
        return _SAMPLE * max(self.batch_size, n_clusters)

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield MiniBatchRun(self, fit, centers)


class MiniBatchRun:
    """One start, batch by batch."""

    silent: ClassVar[bool] = False
    depends_on_session: ClassVar[bool] = False  # rows are gathered, and nothing is kept of them

    def __init__(self, how: MiniBatches, fit: FitContext, centers: Tensor) -> None:
        self.how, self.fit, self.centers = how, fit, centers
        self._counts = centers.new_zeros(len(centers))  # rows that each center has seen
        self._at_pass = centers  # the centers at the beginning of the pass
        self._n_steps, self._stopped = 0, False
        self._smoothed = self._lowest = np.inf
        self._n_waited = 0

    @property
    def done(self) -> bool:
        most = self.fit.rules.max_iter * self.how.rows.n_rows // self.how.batch_size
        return self._stopped or self._n_steps >= most

    @property
    def can_finish(self) -> bool:
        return self._n_steps > 0

    def advance(self, recorder: HistoryRecorder) -> None:
        """Move the centers; the objective of the old ones is estimated from the batch."""
        began, size, n_rows = perf_counter(), self.how.batch_size, self.how.rows.n_rows
        plan, session = self.fit.plan, self.fit.session
        rows = self.how.rows.batch(size)
        update, away = sum_minibatch(
            session, rows.to(session.layout.device), self.centers.to(session.layout.dtype)
        )
        new, self._counts = merge_batch(
            update, self.centers, self._counts, directions=plan.directions
        )
        if self._n_steps % _BETWEEN == _BETWEEN - 1:
            new = self._reassign(new, rows)
        old, self.centers = self.centers, new
        objective = float(away) * (0.5 if plan.directions else 1.0) * self.how.rows.weight / size
        if self._n_steps * size >= len(recorder.history) * n_rows:  # a pass begins
            recorder.history.append(objective)
        number, self._n_steps = self._n_steps, self._n_steps + 1
        ends_pass = self._n_steps * size % n_rows < size
        self._stopped = self._note_objective(objective)
        if ends_pass and not self._stopped:
            # The centers are compared once per pass: a single batch moves them by noise alone.
            moved = (self.centers - self._at_pass).square().sum()[None].cpu().numpy()
            self._at_pass = self.centers
            self._stopped = is_settled("shift", moved, moved, np.array([self.fit.tolerance])).item()
        if recorder.callback is not None:
            shift = float((new - old).square().sum())
            recorder.notify(number, objective, shift, size, perf_counter() - began)

    def finish(self, history: list[float]) -> Outcome:
        return self.fit.finish_at(self.centers, history, n_steps=self._n_steps)

    def state(self) -> Any:
        names = ("centers", "_counts", "_at_pass", "_n_steps", "_stopped", "_smoothed", "_lowest")
        kept = {name: getattr(self, name) for name in (*names, "_n_waited")}
        return kept, self.how.rows.generator.bit_generator.state

    def restore(self, state: Any) -> None:
        kept, self.how.rows.generator.bit_generator.state = state
        vars(self).update(kept)

    def _note_objective(self, objective: float) -> bool:
        """Smooth the objective; True if it has not been lower for too many batches.

        The first batch is ignored, as in scikit-learn: its centers are the initial ones.
        """
        if self._n_steps == 1:
            return False
        # scikit-learn's weight: the average looks back over about one pass.
        share = min(1.0, 2 * self.how.batch_size / (self.how.rows.n_rows + 1))
        if self._smoothed == np.inf:
            self._smoothed = objective
        else:
            self._smoothed += share * (objective - self._smoothed)
        is_lower = self._smoothed < self._lowest
        self._lowest = self._smoothed if is_lower else self._lowest
        self._n_waited = 0 if is_lower else self._n_waited + 1
        most = self.how.max_no_improvement
        return most is not None and self._n_waited >= most

    def _reassign(self, centers: Tensor, rows: Tensor) -> Tensor:
        """Move starved centers to rows of the batch, where that lowers the objective.

        Without center j, its rows would cost m_j |c_j - c_i|^2 more at the nearest other center i.
        """
        starved = self._counts < self.how.reassignment_ratio * self._counts.max()
        if len(centers) == 1 or not bool(starved.any()):
            return centers
        # A center that is a row has seen that row at least; the loss of a center is never 0 then.
        held = self._counts.clamp(min=float(self.how.from_rows))
        between = torch.cdist(centers, centers).fill_diagonal_(torch.inf)
        loss = held * between.amin(dim=1).square() / held.sum()  # per row of the data
        lost = torch.where(starved, loss, torch.inf).argsort(stable=True)[: int(starved.sum())]
        points = self.fit.session.gather(rows.to(self.fit.session.layout.device))
        batch, here = DenseRows(points, None), centers.to(points)
        labels = batch.scores(here).min(dim=1).indices
        away = batch.squared_distances(here, labels).double()
        # At most half of the rows become centers, as in scikit-learn.
        for j in lost[: len(rows) // 2].tolist():
            # A new place, drawn in proportion to squared distance as in k-means++.
            reached = away.cumsum(dim=0)
            if float(reached[-1]) == 0:  # all rows are centers
                break
            draw = self.how.rows.generator.random()
            at = torch.searchsorted(reached, reached[-1] * draw, right=True)
            at = at.clamp(max=len(reached) - 1)
            to_drawn = (points - points[at]).square().sum(dim=1)
            near = to_drawn < away
            # The drawn row does not count: it was drawn because it is far, which would bias the
            # gain.
            gain = (torch.where(near, away - to_drawn, 0.0).sum() - away[at]) / len(points)
            if float(gain) <= float(loss[j]):
                break
            away = torch.minimum(away, to_drawn.double())
            place = lost.new_tensor([j])
            centers = centers.index_copy(0, place, points[near].double().mean(dim=0)[None])
            self._counts = self._counts.index_fill(0, place, float(near.sum()))
        return centers
