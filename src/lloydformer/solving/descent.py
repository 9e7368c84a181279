"""One start: iterate from initial centers, then label the points for the last time."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from lloydformer.plans.assign import Farthest, FarthestPoints
from lloydformer.plans.contract import Final, Placed, Plan, Step, Sums
from lloydformer.plans.medoids import rows_of
from lloydformer.plans.session import Session
from lloydformer.solving.best_seen import BestSeen
from lloydformer.solving.loop import Iteration, Loop
from lloydformer.solving.milestones import Milestones
from lloydformer.solving.rules import Rules, is_better


@dataclass(frozen=True)
class Progress:
    """What a callback hears after each iteration.

    Attributes
    ----------
    start, iteration : int
        The number of the restart and of the iteration, counted from 0.
    objective : float
        Of the centers that the iteration began with.
    shift : float
        Sum of the squared shifts of the centers.
    n_points : int
        Number of points that the iteration went over.
    seconds : float
        How long it took.
    """

    start: int
    iteration: int
    objective: float
    shift: float
    n_points: int = 0
    seconds: float = 0.0


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome:
    """What one start led to; its labels are in the session until the next fold.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In float64, relative to the data's origin.
    inertia : float
        Of these centers.
    history : tuple of float
        The objective before each iteration, and at the end.
    rows : Tensor of shape (k,) or None
        The data rows that the centers are, in plans that draw medoids.
    masses : tuple of float or None
        The weight that each center stands for, in plans whose centers are running means.
    n_steps : int or None
        Number of mini-batches; None if every iteration went over all rows.
    """

    centers: Tensor
    inertia: float
    history: tuple[float, ...]
    rows: Tensor | None = None
    masses: tuple[float, ...] | None = None
    n_steps: int | None = None


def outcome_of(
    centers: Tensor,
    history: list[float],
    last: Final,
    rows: Tensor | None = None,
    n_steps: int | None = None,
) -> Outcome:
    """The outcome of a start whose points have been labelled for the last time."""
    return Outcome(
        centers, last.inertia, (*history, last.objective), rows, last.masses, n_steps
    )  # fmt: skip


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a start, with its outcome so far; None before the first iteration."""

    def __init__(self, outcome: Outcome | None) -> None:
        super().__init__("stopped by the user")
        self.outcome = outcome


@dataclass(frozen=True)
class Descent:
    """Everything that the starts of one fit share.

    Attributes
    ----------
    plan, session, rules
        What is iterated, on what, and until when.
    tolerance : float
        Of the sum of the squared shifts of the centers.
    callback : callable or None
        Called with a `Progress` after each iteration.
    """

    plan: Plan
    session: Session
    rules: Rules
    tolerance: float
    callback: Callback | None = None

    def from_start(self, number: int, centers: Tensor) -> Outcome:
        """Iterate from these centers (k, d), in float64; `number` counts the starts."""
        self.session.forget()
        outcome = self._in_one_call(centers)
        return self._step_by_step(number, centers) if outcome is None else outcome

    def finish(
        self,
        centers: Tensor,
        history: list[float],
        rows: Tensor | None = None,
        n_steps: int | None = None,
    ) -> Outcome:
        """Label the points by centers as they will be returned."""
        final = self.session.layout.rounded(centers)
        last = self.plan.finish(self.session, final.to(self.session.layout.dtype))
        return outcome_of(final, history, last, rows, n_steps)

    def heard(self, number: int, iteration: Iteration) -> None:
        """Tell the callback of an iteration."""
        if self.callback is not None:
            layout, shift = self.session.layout, iteration.shift.item()
            objective = iteration.objective.item() * layout.weight_unit
            n_points, seconds = layout.n_rows, iteration.seconds
            self.callback(Progress(number, iteration.number, objective, shift, n_points, seconds))

    def _in_one_call(self, centers: Tensor) -> Outcome | None:
        """Run the loop in engine calls, if no callback is set and the engine has such a task."""
        fills = self.rules.empty == "farthest" or self.plan.empties == "keep"
        if self.callback is not None or not fills:
            return None
        history: list[float] = []
        settled = False
        try:
            while not settled and len(history) < self.rules.max_iter:
                left = self.rules.max_iter - len(history)
                ran = self.plan.iterate(self.session, centers, self.tolerance, left)
                if ran is None:
                    return None
                centers, settled = ran.centers, ran.settled
                history += ran.history
                if ran.final is not None:
                    return outcome_of(centers, history, ran.final)
                if ran.interrupted:
                    raise KeyboardInterrupt
                if ran.empty:
                    centers, objective, settled = self._one_iteration(centers)
                    history.append(objective)
        except KeyboardInterrupt:
            raise Stopped(self.finish(centers, history) if history else None) from None
        return self.finish(centers, history) if history else None

    def _one_iteration(self, centers: Tensor) -> tuple[Tensor, float, bool]:
        """New centers, the objective before, and whether the stop rule holds."""
        rules, tolerance = replace(self.rules, max_iter=1), np.array([self.tolerance])
        loop = Loop(self.plan, OneProblem(self.plan, self.session), rules, tolerance, centers[None])
        loop.run()
        return loop.centers[0], loop.history[0].item(), loop.settled

    def _step_by_step(self, number: int, centers: Tensor) -> Outcome:
        problem = OneProblem(self.plan, self.session)
        loop = Loop(
            self.plan, problem, self.rules, np.array([self.tolerance]), centers[None],
            first=number * self.rules.max_iter, best=self._best(centers),
            report=lambda iteration: self.heard(number, iteration),
        )  # fmt: skip
        milestones = Milestones(
            self.session, self.plan, self.rules, self.tolerance, number, centers
        )
        if milestones.known is not None:
            loop.resume(milestones.known)
        loop.reached = milestones.reach
        try:
            loop.run()
        except KeyboardInterrupt:
            raise Stopped(self._finished(loop) if loop.history else None) from None
        return self._finished(loop)

    def _best(self, centers: Tensor) -> BestSeen | None:
        if not self.plan.draws:
            return None
        rows = rows_of(self.session, centers)
        return BestSeen(centers[None], None if rows is None else rows[None])

    def _finished(self, loop: Loop) -> Outcome:
        history, best = [row.item() for row in loop.history], loop.best
        if best is None:
            return self.finish(loop.centers[0], history)
        rows = best.last_rows
        last = self.finish(loop.centers[0], history, None if rows is None else rows[0])
        if self.rules.return_last or not is_better(best.objective, np.array([last.inertia])).item():
            return last
        return self.finish(best.centers[0], history, best.rows[0])


@dataclass(frozen=True)
class OneProblem:
    """The data of a session as a batch of one problem."""

    plan: Plan
    session: Session

    def step(self, centers: Tensor, iteration: int) -> Step:
        step = self.plan.step(self.session, self._seen(centers), iteration)
        changed = None if step.changed is None else step.changed[None]
        return Step(_batch_of_one(step.update), step.objective[None], changed)

    def farthest(self, centers: Tensor, count: int) -> FarthestPoints:
        found = self.session.fold(Farthest(self._seen(centers), count))
        return FarthestPoints(*(value[None] for value in vars(found).values()))

    def only(self, going: Tensor) -> "OneProblem":
        return self

    def _seen(self, centers: Tensor) -> Tensor:
        return centers[0].to(self.session.layout.dtype)


def _batch_of_one(update: Sums | Placed) -> Sums | Placed:
    if isinstance(update, Sums):
        return Sums(update.sums[None], update.masses[None])
    rows = None if update.rows is None else update.rows[None]
    return Placed(update.centers[None], rows)
