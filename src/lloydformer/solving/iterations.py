"""The iterations of a plan: one run for the rows of a session, or a batch of small problems.

`PlanLoop` is written for a batch of problems, and a fit is a batch of one. `solving/rules.py` has
the rules that it follows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.assign import Farthest, FarthestPoints
from lloydformer.plans.contract import FinalAssignment, NewCenters, Plan, Step, Sums, apply_update
from lloydformer.plans.medoids import match_rows
from lloydformer.plans.session import Session
from lloydformer.solving.rules import Rules, fill_empty, is_better, is_settled
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome


@runtime_checkable
class Problems(Protocol):
    """b problems of the same n, d and k, as the loop sees them."""

    def step(self, centers: Tensor, iteration: int) -> Step:
        """Compute one iteration of each problem, from centers (b, k, d) in float64."""

    def farthest(self, centers: Tensor, count: int) -> FarthestPoints:
        """Return the points of each problem that are farthest from their centers, (b, m).

        Precondition: the last `step` began with these centers.
        """

    def only(self, places: Tensor) -> "Problems":
        """Return the problems at these places (b',) of the batch."""


class BestCenters:
    """The centers with the lowest objective so far, for plans that draw new centers each time.

    A step measures the objective of the centers that it began with, which the previous step drew.
    So the last draw is measured by the next step, or at the end of the run.

    Parameters
    ----------
    centers : Tensor of shape (b, k, d)
        The initial centers.
    rows : Tensor of shape (b, k) or None
        The data rows that the initial centers are equal to. None if they are not data rows: then
        they are not candidates for the best centers.

    Attributes
    ----------
    objective : ndarray of shape (b,)
        The lowest objective so far; infinity before the first draw is measured.
    centers : Tensor of shape (b, k, d)
        The centers that have this objective.
    rows : Tensor of shape (b, k)
        The data rows that `centers` are equal to.
    n_waited : ndarray of shape (b,)
        Number of iterations since the objective last became lower.
    last_rows : Tensor of shape (b, k) or None
        The data rows of the last draw; None before the first one, if the initial centers are not
        data rows.
    """

    def __init__(self, centers: Tensor, rows: Tensor | None) -> None:
        b, k, _ = centers.shape
        self.objective = np.full(b, np.inf)
        self.n_waited = np.zeros(b, dtype=np.int64)
        self.centers = self._last = centers
        self.rows = torch.zeros((b, k), dtype=torch.long, device=centers.device)
        self.last_rows = rows

    def see(self, active: Tensor, objective: np.ndarray, update: NewCenters) -> None:
        """Compare the last draw with the best one, and remember the new draw.

        Parameters
        ----------
        active : Tensor of shape (b',)
            The places of the problems that still run.
        objective : ndarray of shape (b',)
            The objectives of their last draw.
        update : NewCenters
            Their new draw, which the next call measures.
        """
        numbers = active.cpu().numpy()
        self.n_waited[numbers] += 1
        if self.last_rows is None:  # the initial centers are no draw
            rows = torch.zeros_like(self.rows)
        else:
            better = is_better(objective, self.objective[numbers])
            improved = numbers[better]
            self.objective[improved], self.n_waited[improved] = objective[better], 0
            mask = torch.zeros(len(self.centers), dtype=torch.bool, device=active.device)
            mask[active[torch.from_numpy(better).to(active.device)]] = True
            self.centers = torch.where(mask[:, None, None], self._last, self.centers)
            self.rows = torch.where(mask[:, None], self.last_rows, self.rows)
            rows = self.last_rows.clone()
        # Copies: `centers` may be the very tensor of the last draw.
        last = self._last.clone()
        assert update.rows is not None
        last[active], rows[active] = update.centers, update.rows
        self._last, self.last_rows = last, rows


@dataclass
class PlanLoop:
    """Iterates each problem until its own stop rule holds, and then drops it from the batch.

    Attributes
    ----------
    plan : Plan
        The plan whose iterations are run.
    problems : Problems
        The problems that still run.
    rules : Rules
        When the iterations stop, and what happens to empty clusters.
    tolerance : ndarray of shape (b,)
        A problem stops when the sum of the squared shifts of its centers is at most this.
    centers : Tensor of shape (b, k, d)
        The centers after the last whole iteration, in float64.
    first : int
        Offset of the noise counter, so that restarts draw different noise.
    best : BestCenters or None
        The best centers so far, for plans that draw their centers; None for other plans.
    number : int
        Number of iterations of the batch so far.
    n_iter : ndarray of shape (b,)
        Number of iterations of each problem; less than `number` once it has stopped.
    done : bool
        All problems are settled, or `rules.max_iter` is reached.
    """

    plan: Plan
    problems: Problems
    rules: Rules
    tolerance: np.ndarray
    centers: Tensor
    first: int = 0
    best: BestCenters | None = None
    number: int = 0
    n_iter: np.ndarray = field(init=False)
    done: bool = field(init=False)

    def __post_init__(self) -> None:
        self.n_iter = np.zeros(self.centers.shape[0], dtype=np.int64)
        self._active: Tensor | None = None  # made by the first iteration: an engine may run all
        self.done = self.rules.max_iter == 0

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        """Run one iteration of the active problems (b',); return their objectives and shifts."""
        # State is changed only after the step: Ctrl-C within it leaves the last whole iteration.
        if self._active is None:
            self._active = torch.arange(len(self.centers), device=self.centers.device)
        active, everyone = self._active, len(self._active) == len(self.centers)
        centers = self.centers if everyone else self.centers[active]
        step = self.problems.step(centers, self.first + self.number)
        new, objective, changed, shift = self._move_centers(step, centers)
        self.centers = new if everyone else self.centers.index_copy(0, active, new)
        chosen = slice(None) if everyone else active.cpu().numpy()
        self.n_iter[chosen] += 1
        self.number += 1
        if self.best is not None and isinstance(step.update, NewCenters):
            self.best.see(active, objective, step.update)
        ended = is_settled(self.plan.stops_on, changed, shift, self.tolerance[chosen])
        if self.best is not None and self.rules.patience is not None:
            ended = ended | (self.best.n_waited[chosen] > self.rules.patience)
        self.done = bool(ended.all()) or self.number >= self.rules.max_iter
        # Dropped, so that later iterations cost only as much as the problems that still run.
        if not self.done and ended.any():
            left = torch.from_numpy(~ended).to(active.device)
            self.problems, self._active = self.problems.only(left.nonzero()[:, 0]), active[left]
        return objective, shift

    def adopt(self, centers: Tensor, number: int, done: bool) -> None:
        """Continue after iterations that ran elsewhere: in an engine call, or before a checkpoint.

        Parameters
        ----------
        centers : Tensor of shape (b, k, d)
            The centers after these iterations, in float64.
        number : int
            Number of iterations so far, the same for every problem.
        done : bool
            The stop rule holds for every problem.
        """
        self.centers, self.number = centers, number
        self.n_iter[:] = number
        self.done = done or number >= self.rules.max_iter

    def _move_centers(
        self, step: Step, centers: Tensor
    ) -> tuple[Tensor, np.ndarray, np.ndarray, np.ndarray]:
        """Return new centers (b', k, d), and the numbers (b',): objective, changed labels, shift.

        The numbers need one synchronisation with the device, unless a cluster is empty.
        """
        update = step.update
        new = apply_update(update, centers, self.plan.directions)
        numbers = [step.objective, _squared_shift(new, centers)]
        if step.changed is not None:
            numbers.append(step.changed)
        # Two settings may leave empty clusters as they are: the user's and that of the plan.
        fills = isinstance(update, Sums) and "keep" not in (self.rules.empty, self.plan.empties)
        if isinstance(update, Sums) and fills:
            numbers.append(update.masses.amin(dim=1))
        objective, shift, *others = _to_host(numbers)
        # The smallest mass was copied with the other numbers, so that iterations without empty
        # clusters, which are nearly all, need no further synchronisation for this check.
        if isinstance(update, Sums) and fills and others[-1].min() == 0:
            if self.rules.empty == "error":
                lost = int((update.masses == 0).nonzero()[0, 1])
                raise ValueError(
                    f"n_clusters: cluster {lost} has lost all its points; use fewer clusters, "
                    'another init, or empty="farthest"'
                )
            count = int((update.masses == 0).sum(dim=1).max())
            far = self.problems.farthest(centers, count)
            filled = fill_empty(update, far, self.plan.empties)
            new = apply_update(filled, centers, self.plan.directions)
            (shift,) = _to_host([_squared_shift(new, centers)])
        changed = others[0] if step.changed is not None else np.ones_like(shift)
        return new, objective, changed, shift


def _squared_shift(new: Tensor, centers: Tensor) -> Tensor:
    """Return the sum of the squared shifts of the centers of each problem, (b,)."""
    shifts = (new - centers).flatten(1)
    return torch.linalg.vecdot(shifts, shifts)


def _to_host(numbers: list[Tensor]) -> list[np.ndarray]:
    """Copy tensors (b,) to the host, in one synchronisation."""
    return list(torch.stack([number.double() for number in numbers]).cpu().numpy())


T = TypeVar("T")


def as_batch(one: T) -> T:
    """Return the tensors of one problem as those of a batch of one."""
    make: Any = type(one)
    return make(*(None if value is None else value[None] for value in vars(one).values()))


@dataclass
class SessionProblem:
    """The data of a session as a batch of one problem."""

    plan: Plan
    session: Session

    def step(self, centers: Tensor, iteration: int) -> Step:
        step = self.plan.step(self.session, self._in_precision(centers), iteration)
        changed = None if step.changed is None else step.changed[None]
        return Step(as_batch(step.update), step.objective[None], changed)

    def farthest(self, centers: Tensor, count: int) -> FarthestPoints:
        return as_batch(self.session.fold(Farthest(self._in_precision(centers), count)))

    def only(self, places: Tensor) -> "SessionProblem":
        return self  # the loop ends with its only problem, so it never drops one

    def _in_precision(self, centers: Tensor) -> Tensor:
        return centers[0].to(self.session.layout.dtype)


class PlanRun:
    """The iterations of the context's plan from one start.

    Parameters
    ----------
    fit : FitContext
        Plan, session and rules of the fit.
    restart : int
        Number of the restart, from 0; the noise of plans that draw depends on it.
    centers : Tensor of shape (k, d)
        The initial centers, in float64.
    silent : bool
        If True, iterations are not passed to the callback.
    """

    def __init__(
        self, fit: FitContext, restart: int, centers: Tensor, *, silent: bool = False
    ) -> None:
        plan, session, rules = fit.plan, fit.session, fit.rules
        self.fit, self.silent = fit, silent
        session.forget()  # the first iteration counts every label as changed
        best = None
        if plan.draws_centers:
            rows = match_rows(session, centers)
            best = BestCenters(centers[None], None if rows is None else rows[None])
        # Noise is a function of its counter: each restart has max_iter values of the counter.
        first, tolerance = restart * rules.max_iter, np.array([fit.tolerance])
        problem = self.make_problem(fit)
        self._loop = PlanLoop(plan, problem, rules, tolerance, centers[None], first, best)
        # An engine call that runs many iterations fills an empty cluster by the farthest point, or
        # stops before it (`IterationsResult.empty`). It implements neither empty="keep" nor
        # "error", which matter only for plans that fill empty clusters.
        can_fill = rules.empty == "farthest" or plan.empties == "keep"
        self._by_engine = can_fill and not fit.watched
        self._final: FinalAssignment | None = None

    def make_problem(self, fit: FitContext) -> SessionProblem:
        """Return the data as the loop sees them."""
        return SessionProblem(fit.plan, fit.session)

    @property
    def done(self) -> bool:
        return self._loop.done

    @property
    def centers(self) -> Tensor:
        """The centers (k, d) after the last iteration."""
        return self._loop.centers[0]

    @property
    def can_finish(self) -> bool:
        return self._loop.number > 0

    @property
    def depends_on_session(self) -> bool:
        return self._loop.number > 0

    def advance(self, recorder: HistoryRecorder) -> None:
        fit, loop, ran = self.fit, self._loop, None
        if self._by_engine:
            left = fit.rules.max_iter - loop.number
            ran = fit.plan.iterate(fit.session, loop.centers[0], fit.tolerance, left)
            self._by_engine = ran is not None  # do not try again if the engine has no such task
        if ran is not None:
            done = ran.settled or ran.final is not None
            loop.adopt(ran.centers[None], loop.number + len(ran.history), done)
            recorder.history += ran.history
            self._final = ran.final
            if ran.interrupted and ran.final is None:
                raise KeyboardInterrupt
            if loop.done or not ran.empty:
                return
            # The engine stopped before an iteration that empties a cluster; the loop runs that one.
        objective, shift = loop.advance()
        recorder.record(objective.item(), shift.item())

    def finish(self, history: list[float]) -> Outcome:
        best, final = self._loop.best, self._final
        if final is not None:
            ends = (*history, final.objective)
            return Outcome(self.centers, final.inertia, ends, masses=final.masses)
        if best is None:
            return self.fit.finish_at(self.centers, history)
        # The last draw has not been measured by a step: `finish_at` does that.
        rows = best.last_rows
        last = self.fit.finish_at(self.centers, history, None if rows is None else rows[0])
        inertia = np.array([last.inertia])
        if self.fit.rules.return_last or not is_better(best.objective, inertia).item():
            return last
        return self.fit.finish_at(best.centers[0], history, best.rows[0])

    def state(self) -> Any:
        loop, best = self._loop, self._loop.best
        kept = None if best is None else dict(vars(best))
        return loop.centers, loop.number, loop.done, kept

    def restore(self, state: Any) -> None:
        centers, number, done, kept = state
        self._loop.adopt(centers, number, done)
        if self._loop.best is not None:
            vars(self._loop.best).update(kept)


@dataclass(frozen=True)
class PlanIterations:
    """The algorithm of most estimators: the plan's iterations until the stop rule holds."""

    n_starts: ClassVar[int] = 1

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield PlanRun(fit, restart, centers)
