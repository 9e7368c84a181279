"""The course of a search for medoids: its moves one after the other, from each start."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from lloydformer.algorithms.medoid_schedule import SearchMoves
from lloydformer.plans.medoid_search import begin_search
from lloydformer.plans.medoids import Closest
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Descent, Outcome, Stopped
from lloydformer.solving.loop import Iteration

Rounds = Callable[[SearchMoves, int], Iterator[bool]]
"""Runs a search move by move, with noise from the layer of a number on."""


@dataclass(frozen=True)
class MedoidCourse:
    """The search from each start; its history has the loss before each move.

    Attributes
    ----------
    metric : str
        The distance.
    rounds : callable
        The moves.
    """

    metric: str
    rounds: Rounds

    def __call__(self, descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
        descent.session.forget()
        walk = _MedoidWalk(self, descent, number, starting_rows(descent.session, centers))
        try:
            walk.run()
        except KeyboardInterrupt:
            walk.stop()
            raise Stopped(walk.outcome() if walk.history else None) from None
        yield walk.outcome()


class _MedoidWalk:
    """One start; `medoids` and `history` are those after the last move."""

    def __init__(
        self, course: MedoidCourse, descent: Descent, number: int, rows: np.ndarray
    ) -> None:
        self.course, self.descent, self.number = course, descent, number
        self.search = begin_search(descent.session, course.metric, rows)
        self.medoids = self.search.medoids.copy()
        self.history: list[float] = []
        self._before, self._began = self.search.loss, perf_counter()

    def run(self) -> None:
        most = self.descent.rules.max_iter
        for _ in self.course.rounds(self.search, self.number * most):
            self._note()
            if len(self.history) >= most:
                return

    def stop(self) -> None:
        """Keep what a move has found that was interrupted; it counts as an iteration."""
        medoids = self.search.medoids.copy()
        if len(medoids) == len(self.medoids) and self.search.loss < self._before:
            self.history.append(self._before)
            self.medoids = medoids

    def outcome(self) -> Outcome:
        """The last medoids, with labels; rounding is kept from letting the history rise."""
        rows = torch.from_numpy(self.medoids)
        centers = self.descent.session.gather(rows.to(self.descent.session.layout.device))
        found = self.descent.finish(centers.double(), self.history, rows)
        end = found.history[-1]
        return replace(found, history=tuple(max(loss, end) for loss in found.history))

    def _note(self) -> None:
        now, medoids, before = perf_counter(), self.search.medoids.copy(), self._before
        took, self._began = now - self._began, now
        heard = self.descent.callback is not None
        shift = np.array([self._shift(medoids) if heard else 0.0])
        self.history.append(before)
        self.medoids, self._before = medoids, self.search.loss
        if heard:
            iteration = Iteration(len(self.history) - 1, np.array([before]), shift, took)
            self.descent.heard(self.number, iteration)

    def _shift(self, medoids: np.ndarray) -> float:
        """Sum of the squared distances from the last medoids to these."""
        device = self.descent.session.layout.device
        old, new = (
            self.descent.session.gather(torch.from_numpy(rows).to(device)).double()
            for rows in (self.medoids, medoids)
        )
        return float((new - old).square().sum())


def starting_rows(session: Session, centers: Tensor) -> np.ndarray:
    """The row nearest to each center; where two have the same one, another row with weight."""
    _, rows = session.fold(Closest(centers.to(session.layout.dtype)))
    found = rows.cpu().numpy().astype(np.int64)
    again = np.ones(len(found), bool)
    again[np.unique(found, return_index=True)[1]] = False
    if again.any():
        fractions = torch.arange(len(found), dtype=torch.float64) / len(found)
        others = session.draw_by_weight(fractions).cpu().numpy()
        found[again] = np.setdiff1d(others, found)[: again.sum()]
    return found
