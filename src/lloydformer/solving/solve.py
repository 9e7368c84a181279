"""Solve a problem: seeds, restarts, the best of them, and Ctrl-C."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.parts import LabelsOnParts
from lloydformer.plans.assign import Moments
from lloydformer.plans.contract import Plan
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Callback, Descent, Outcome, Stopped
from lloydformer.solving.rules import Rules, is_better, same_labelling

Starts = Callable[[Session], Iterator[Tensor]]
"""Yields initial centers (k, d) in float64, one for each restart."""
Course = Callable[[Descent, int, Tensor], Iterator[Outcome]]
"""Runs from the start of a number and its centers; may yield several outcomes."""


@dataclass(frozen=True)
class Result:
    """The best outcome of a fit, with its labels.

    Attributes
    ----------
    outcome : Outcome
        Centers, inertia, history.
    labels : Tensor of shape (n,) or LabelsOnParts
        The nearest center of each point.
    trimmed : Tensor of shape (n,) or None
        Points that are left out, in plans that trim.
    """

    outcome: Outcome
    labels: Tensor | LabelsOnParts
    trimmed: Tensor | None = None

    @property
    def centers(self) -> Tensor:
        return self.outcome.centers

    @property
    def inertia(self) -> float:
        return self.outcome.inertia

    @property
    def n_iter(self) -> int:
        return len(self.outcome.history) - 1


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the best result so far; None if there is none yet."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("stopped by the user")
        self.result = result


def solve(
    plan: Plan,
    session: Session,
    starts: Starts,
    rules: Rules,
    callback: Callback | None = None,
    course: Course | None = None,
) -> Result:
    """Run the plan from each start and keep the result with the smallest inertia.

    course: what is run from each start instead of the plan's iterations alone.
    """
    square, tolerance = moments(session, rules.tol)
    descent = Descent(plan.knowing(square), session, rules, tolerance, callback)
    best = _Best(session)
    try:
        for number, centers in enumerate(starts(session)):
            for outcome in (course or iterations)(descent, number, centers):
                best.see(outcome)
    except Stopped as stop:
        if stop.outcome is not None:
            best.see(stop.outcome)
        raise Interrupted(best.result) from None
    except KeyboardInterrupt:
        raise Interrupted(best.result) from None
    result = best.result
    assert result is not None, "starts yields at least one"
    return result


def iterations(descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
    """The plain course: the plan's iterations until the stop rule ends them."""
    yield descent.from_start(number, centers)


def moments(session: Session, tol: float) -> tuple[float, float]:
    """The sum of w |x|^2, and scikit-learn's tolerance: tol times the mean variance."""
    found = session.fold(Moments())
    if found[0].device.type == "cpu":  # NumPy needs fewer microseconds for few numbers
        weighted, count, plain, sums = (moment.numpy() for moment in found)
        square, variance = float(weighted), float(plain / count - np.square(sums / count).sum())
    else:
        weighted, count, plain, sums = found
        variance = plain / count - (sums / count).square().sum()
        square, variance = torch.stack([weighted, variance]).tolist()
    return square, tol * max(variance, 0.0) / session.layout.n_features


def _one(inertia: float) -> np.ndarray:
    """A batch of one problem."""
    return np.array([inertia])


class _Best:
    """Keeps the best outcome, with the labels that the session has of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._found: Result | None = None

    @property
    def result(self) -> Result | None:
        """The best outcome, for weights as the user gave them."""
        if self._found is None:
            return None
        layout, outcome = self.session.layout, self._found.outcome
        inertia, *history = layout.in_given_units(outcome.inertia, *outcome.history)
        if layout.weight_unit == 1:
            return self._found
        masses = outcome.masses
        if masses is not None:
            masses = tuple(mass * layout.weight_unit for mass in masses)
        given = replace(outcome, inertia=inertia, history=tuple(history), masses=masses)
        return replace(self._found, outcome=given)

    def see(self, outcome: Outcome) -> None:
        """Compare an outcome whose labels are still in the session."""
        best = self._found
        if best is not None and not is_better(_one(outcome.inertia), _one(best.inertia)).item():
            return
        labels, trimmed = self.session.labels(), self.session.trimmed()
        result = Result(outcome, labels, trimmed)
        if best is None or not _same_labels(result, best):
            self._found = result


def _same_labels(one: Result, other: Result) -> bool:
    """Are the clusters the same, but for their numbers?"""
    k = len(one.centers)
    if isinstance(one.labels, LabelsOnParts):
        return one.labels.same_as(other.labels, k)
    assert isinstance(other.labels, Tensor)
    return same_labelling((one.labels, one.trimmed), (other.labels, other.trimmed), k)
