"""The loop of every algorithm, for a batch of problems; a fit is a batch of one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.contract import Placed, Plan, Step, Sums, moved
from lloydformer.solving.best_seen import BestSeen
from lloydformer.solving.rules import Rules, fill_empty, settled


@runtime_checkable
class Problems(Protocol):
    """b problems of the same n, d and k, as the loop sees them."""

    def step(self, centers: Tensor, iteration: int) -> Step:
        """One iteration of each problem, from centers (b, k, d) in float64."""
        ...

    def farthest(self, centers: Tensor, count: int) -> FarthestPoints:
        """The points of each problem that are farthest from their centers, (b, m).

        Precondition: the last `step` began with these centers.
        """
        ...

    def only(self, going: Tensor) -> "Problems":
        """The problems at these places (b',)."""
        ...


@dataclass(frozen=True)
class Iteration:
    """What the loop reports of an iteration: numbers (b',) of the problems that are going."""

    number: int
    objective: np.ndarray
    shift: np.ndarray
    seconds: float


@dataclass
class Loop:
    """Iterates each problem until its own stop rule, then leaves it out of the batch.

    Attributes
    ----------
    plan, problems, rules
        What is iterated, on what, and until when.
    tolerance : ndarray of shape (b,)
        Of the sum of the squared shifts of the centers.
    centers : Tensor of shape (b, k, d)
        In float64; those of the last iteration, also after an interrupt.
    first : int
        Offset of the noise counter, so that restarts draw different noise.
    best : BestSeen or None
        Keeps the best centers, for plans that draw.
    report : callable or None
        Called with an `Iteration` after each one.
    reached : callable or None
        In a batch of one: called with `values` after each iteration that does not end the loop.
    history : list of ndarray
        The objective (b,) of the centers that each iteration began with; NaN after the end.
    n_iter : ndarray of shape (b,)
        Number of iterations of each problem.
    settled : bool
        Did the stop rule end all problems?
    """

    plan: Plan
    problems: Problems
    rules: Rules
    tolerance: np.ndarray
    centers: Tensor
    first: int = 0
    best: BestSeen | None = None
    report: Callable[[Iteration], None] | None = None
    reached: Callable[[tuple[Any, ...]], None] | None = None
    history: list[np.ndarray] = field(default_factory=list)
    n_iter: np.ndarray = field(init=False)
    settled: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.n_iter = np.zeros(len(self.centers), dtype=np.int64)

    @property
    def values(self) -> tuple[Any, ...]:
        """What the next iteration begins with; a loop that is resumed takes them."""
        return self.centers, self.history, self.n_iter, self.best

    def resume(self, values: tuple[Any, ...]) -> None:
        """Go on after the iteration that these values are from."""
        self.centers, self.history, self.n_iter, self.best = values

    def run(self) -> None:
        going = torch.arange(len(self.centers), device=self.centers.device)
        problems = self.problems
        for number in range(len(self.history), self.rules.max_iter):
            done = self._advance(number, problems, going)
            if len(done) == 1 and not done[0]:  # a fit that goes on
                if self.reached is not None:
                    self.reached(self.values)
                continue
            if done.all():
                self.settled = True
                return
            if done.any():
                left = torch.from_numpy(~done).to(going.device)
                problems, going = problems.only(left.nonzero()[:, 0]), going[left]

    def _advance(self, number: int, problems: Problems, going: Tensor) -> np.ndarray:
        """One iteration; which of the problems (b',) are done?"""
        began, everyone = perf_counter(), len(going) == len(self.centers)
        centers = self.centers if everyone else self.centers[going]
        step = problems.step(centers, self.first + number)
        new, objective, changed, shift = self._moved(problems, step, centers)
        active = slice(None) if everyone else going.cpu().numpy()
        if everyone:
            self.centers = new
        else:
            self.centers = self.centers.index_copy(0, going, new)
        self._record(active, objective)
        if self.best is not None and isinstance(step.update, Placed):
            self.best.see(going, objective, step.update)
        if self.report is not None:
            self.report(Iteration(number, objective, shift, perf_counter() - began))
        done = settled(self.plan.stops_on, changed, shift, self.tolerance[active])
        if self.best is not None and self.rules.patience is not None:
            done = done | (self.best.waited[active] > self.rules.patience)
        return done

    def _moved(
        self, problems: Problems, step: Step, centers: Tensor
    ) -> tuple[Tensor, np.ndarray, np.ndarray, np.ndarray]:
        """New centers; objective, changed labels and shift (b',), read in one synchronisation."""
        update = step.update
        new = moved(update, centers, self.plan.directions)
        numbers = [step.objective, _shift(new, centers)]
        if step.changed is not None:
            numbers.append(step.changed)
        fills = isinstance(update, Sums) and "keep" not in (self.rules.empty, self.plan.empties)
        if isinstance(update, Sums) and fills:
            numbers.append(update.masses.amin(dim=1))
        objective, shift, *others = _read(numbers)
        if isinstance(update, Sums) and fills and others[-1].min() == 0:
            filled = self._filled(problems, update, centers)
            new = moved(filled, centers, self.plan.directions)
            (shift,) = _read([_shift(new, centers)])
        changed = others[0] if step.changed is not None else np.ones_like(shift)
        return new, objective, changed, shift

    def _filled(self, problems: Problems, update: Sums, centers: Tensor) -> Sums:
        count = int((update.masses == 0).sum(dim=1).max())
        if self.rules.empty == "error":
            lost = int((update.masses == 0).nonzero()[0, 1])
            raise ValueError(
                f"n_clusters: cluster {lost} has lost all its points; use fewer clusters, "
                'another init, or empty="farthest"'
            )
        return fill_empty(update, problems.farthest(centers, count), self.plan.empties)

    def _record(self, active: slice | np.ndarray, objective: np.ndarray) -> None:
        if isinstance(active, slice):
            row = objective
        else:
            row = np.full(len(self.n_iter), np.nan)
            row[active] = objective
        self.history.append(row)
        self.n_iter[active] += 1


def _shift(new: Tensor, centers: Tensor) -> Tensor:
    shifts = (new - centers).flatten(1)
    return torch.linalg.vecdot(shifts, shifts)


def _read(numbers: list[Tensor]) -> list[np.ndarray]:
    """Tensors (b,) on the host, in one synchronisation."""
    return list(torch.stack([number.double() for number in numbers]).cpu().numpy())
