"""The loop that every estimator shares: restarts, stop rule, history, callbacks, Ctrl-C."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.engines.contract import Engine, State
from lloydformer.plans.assign import Moments
from lloydformer.plans.contract import Fold, LayeredPlan, Plan, Run, Step
from lloydformer.plans.medoids import rows_of
from lloydformer.solving.best_seen import BestSeen
from lloydformer.solving.refill import Refill

Starts = Callable[[Run, State], Iterator[Tensor]]
"""Yields initial centers, one for each restart, seen from the data's origin, in float64."""

_SMALL = 1 << 22
"""Problems of so few products n d k are iterated in one call, where the engine has one."""
_PART = 1 << 18
"""Labels that are compared together, so that it takes no memory worth the name."""


@dataclass(frozen=True)
class Progress:
    """What a callback hears after each iteration."""

    start: int
    iteration: int
    objective: float
    shift: float
    n_points: int = 0
    seconds: float = 0.0
    """How many points the iteration went over, and how long it took."""


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Rules:
    """When to stop, and what to do with a cluster that has lost its points."""

    max_iter: int = 300
    tol: float = 1e-4
    empty: str = "farthest"
    patience: int | None = None
    return_last: bool = False


@dataclass(frozen=True)
class Result:
    """What one start came to. Centers are seen from the data's origin, in float64."""

    centers: Tensor
    labels: Tensor
    inertia: float
    history: tuple[float, ...]
    rows: Tensor | None = None
    masses: tuple[float, ...] | None = None
    """Of the clusters, in plans whose centers are running means."""

    @property
    def n_iter(self) -> int:
        return len(self.history) - 1


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the result so far; None if there is none yet."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("stopped by the user")
        self.result = result


def solve(
    plan: Plan,
    data: Blocks,
    starts: Starts,
    rules: Rules,
    engine: Engine,
    callback: Callback | None = None,
    course: "Course | None" = None,
) -> Result:
    """Run the plan from each start, and keep the result with the smallest inertia.

    course: what is run instead from each start; it may come to several results.
    """
    state = State.of(data)
    best = _Best(data, state)
    with engine.over(data, state) as run:
        square, tolerance = _moments(run, data, rules.tol)
        kept = best.kept_through(run)
        descent = Descent(
            plan.knowing(square), data, state, kept, replace(rules, tol=tolerance), callback
        )
        try:
            for number, centers in enumerate(starts(kept, state)):
                for found in (course or _plain)(descent, number, centers):
                    best.see(found)
        except KeyboardInterrupt as stop:
            raise Interrupted(_better(best.result, getattr(stop, "result", None))) from None
    assert best.result is not None, "starts yields at least one"
    return best.result


@dataclass
class _Best:
    """The best result so far. Its labels are copied when a later fold may write to them."""

    data: Blocks
    state: State
    result: Result | None = None

    def see(self, found: Result) -> None:
        best = self.result
        if best is None or (found.inertia < best.inertia and not same(found, best)):
            self.result = found

    def keep(self) -> None:
        if self.result is not None and self.result.labels is self.state.labels:
            self.result = replace(self.result, labels=self.state.copied_labels(self.data))

    def kept_through(self, run: Run) -> Run:
        """The same run: every fold may write to the state."""

        def kept(fold: Fold) -> Any:
            self.keep()
            return run(fold)

        return kept


def _better(one: Result | None, other: Result | None) -> Result | None:
    """The one with the smaller inertia, where there are two."""
    if one is None or other is None:
        return one or other
    return one if one.inertia <= other.inertia else other


@dataclass(frozen=True)
class Descent:
    """Everything that one start needs."""

    plan: Plan
    data: Blocks
    state: State
    run: Run
    rules: Rules
    callback: Callback | None

    def from_start(self, number: int, centers: Tensor) -> Result:
        """Iterate until the stop rule says so, then label the points once more."""
        self.state.clear()
        if isinstance(self.plan, LayeredPlan):
            return self._along(self.plan, number, centers)
        if (found := self._at_once(centers)) is not None:
            return found
        refill = Refill(self.rules.empty, self.plan, self.data, self.state.labels)
        history: list[float] = []
        seen = BestSeen()
        if self.plan.stops_on == "never":
            seen.begin_with(centers, rows_of(self.run, self.data, centers))
        try:
            for iteration in range(self.rules.max_iter):
                began = perf_counter()
                draw = number * self.rules.max_iter + iteration  # no start draws as another did
                step = self.plan.step(self.run, centers.to(self.data.dtype), draw)
                moved = refill.place(self.run, step, centers)
                shift = (moved - centers).square().sum().item()
                seen.see(step, moved)
                history.append(step.objective)
                centers = moved
                if self.callback is not None:
                    took = perf_counter() - began
                    self.callback(Progress(number, iteration, step.objective, shift,
                                           self.data.n_rows, took))  # fmt: skip
                if self._settled(step, shift, seen):
                    break
        except KeyboardInterrupt:
            so_far = self._finished(centers, history, seen) if history else None
            raise Interrupted(so_far) from None
        return self._finished(centers, history, seen)

    def _along(self, plan: LayeredPlan, number: int, centers: Tensor) -> Result:
        """Follow a plan that goes its own course."""
        most, history = self.rules.max_iter, list[float]()
        course = plan.layers(
            self.run, centers, self.data.dtype, self.rules.tol, most, number * most
        )
        began = perf_counter()
        try:
            for layers in course:
                shift = (layers.centers - centers).square().sum().item()
                centers = layers.centers
                took, began = (perf_counter() - began) / layers.count, perf_counter()
                for _ in range(layers.count):
                    history.append(layers.objective)
                    if self.callback is not None:
                        self.callback(Progress(number, len(history) - 1, layers.objective, shift,
                                               self.data.n_rows, took))  # fmt: skip
        except KeyboardInterrupt:
            so_far = self._finished(centers, history, BestSeen()) if history else None
            raise Interrupted(so_far) from None
        return self._finished(centers, history, BestSeen())

    def _at_once(self, centers: Tensor) -> Result | None:
        """All iterations in one call, if no one is to hear of each and there is such a call."""
        heard = self.callback is not None or self.rules.empty != "farthest"
        if heard or self.rules.max_iter == 0 or self.data.n_rows * centers.numel() > _SMALL:
            return None
        found = self.plan.iterate(self.run, centers, self.rules.tol, self.rules.max_iter)
        return None if found is None else self._finished(found[0], found[1], BestSeen())

    def _settled(self, step: Step, shift: float, seen: BestSeen) -> bool:
        """Labels that stay are the end; then centers that move less than the tolerance."""
        if self.plan.stops_on == "never":
            return self.rules.patience is not None and seen.waited > self.rules.patience
        return (self.plan.stops_on == "labels" and step.changed == 0) or shift <= self.rules.tol

    def _finished(self, centers: Tensor, history: list[float], seen: BestSeen) -> Result:
        """The last assignment, to centers as they will be returned."""
        final, rows = self._as_returned(centers), seen.last_rows
        last = self.plan.finish(self.run, final.to(self.data.dtype))
        if (
            seen.centers is not None
            and not self.rules.return_last
            and seen.objective < last.inertia
        ):
            final, rows = self._as_returned(seen.centers), seen.rows
            last = self.plan.finish(self.run, final.to(self.data.dtype))
        labels = self.state.labels
        history = [*history, last.objective]
        return Result(final, labels, last.inertia, tuple(history), rows, last.masses)

    def _as_returned(self, centers: Tensor) -> Tensor:
        """Rounded as a user will have them: labels belong to the centers that are returned."""
        return self.data.place(self.data.returned(centers))


Course = Callable[[Descent, int, Tensor], Iterator[Result]]
"""What is run from the start of this number, with these centers."""


def _plain(descent: Descent, number: int, centers: Tensor) -> Iterator[Result]:
    yield descent.from_start(number, centers)


def _moments(run: Run, data: Blocks, tol: float) -> tuple[float, float]:
    """The sum of w |x|^2, and scikit-learn's tolerance: tol times the mean variance."""
    weighted, count, plain, sums = run(Moments())
    variance = plain / count - (sums / count).square().sum()
    return weighted.item(), tol * max(variance.item(), 0.0) / data.n_features


def same(one: Result, other: Result) -> bool:
    """Are the two labellings equal but for the clusters' numbers?"""
    k = len(one.centers)
    return _follows(one.labels, other.labels, k) and _follows(other.labels, one.labels, k)


def _follows(first: Tensor, second: Tensor, n_clusters: int) -> bool:
    """Is the second label of a point a function of its first? Trimmed labels are negative."""
    numbers = first.new_zeros(2 * n_clusters)
    parts = list(zip(torch.split(first, _PART), torch.split(second, _PART), strict=True))
    for a, b in parts:
        numbers[a.long() + n_clusters] = b
    return all(torch.equal(numbers[a.long() + n_clusters], b) for a, b in parts)
