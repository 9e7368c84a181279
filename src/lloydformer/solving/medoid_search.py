"""The search for medoids: its moves one after the other, from each start."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.medoid_search import SearchMoves, begin_search
from lloydformer.plans.medoids import NearestRows
from lloydformer.plans.session import Session
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome


@dataclass(frozen=True)
class MedoidMoves:
    """The search from each start; its history has the loss before each move.

    Attributes
    ----------
    metric : str
        The distance.
    moves : callable
        Runs a search move by move: ``moves(search, first_layer)``, with noise from that layer on.
    """

    metric: str
    moves: Callable[[SearchMoves, int], Iterator[bool]]
    n_starts: ClassVar[int] = 1

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield MedoidRun(self, fit, restart, centers)


class MedoidRun:
    """The search from one start.

    Parameters
    ----------
    how : MedoidMoves
        The metric and the moves.
    fit : FitContext
        Plan, session and rules of the fit; `fit.rules.max_iter` limits the number of moves.
    restart : int
        Number of the restart, from 0; the noise depends on it.
    centers : Tensor of shape (k, d)
        The initial centers; the search begins at the rows nearest to them.

    Attributes
    ----------
    medoids : ndarray of shape (k,)
        The rows after the last move.
    """

    silent: ClassVar[bool] = False
    depends_on_session: ClassVar[bool] = True

    def __init__(self, how: MedoidMoves, fit: FitContext, restart: int, centers: Tensor) -> None:
        fit.session.forget()
        self.fit, self.done = fit, False
        self._search = begin_search(fit.session, how.metric, nearest_rows(fit.session, centers))
        # Noise is a function of its counter: each restart has max_iter values of the counter.
        self._moves = how.moves(self._search, restart * fit.rules.max_iter)
        self.medoids, self._loss = self._search.medoids.copy(), self._search.loss
        self._n_moves = 0

    @property
    def can_finish(self) -> bool:
        return self._n_moves > 0

    def advance(self, recorder: HistoryRecorder) -> None:
        try:
            ended = next(self._moves, None) is None
        except KeyboardInterrupt:
            # What an interrupted move has found so far is kept; it counts as an iteration.
            medoids = self._search.medoids.copy()
            if len(medoids) == len(self.medoids) and self._search.loss < self._loss:
                recorder.history.append(self._loss)
                self.medoids, self._n_moves = medoids, self._n_moves + 1
            raise
        if ended:
            self.done = True
            return
        medoids, loss = self._search.medoids.copy(), self._loss
        # The shift needs rows from the data, so it is computed only for a callback.
        shift = 0.0 if recorder.callback is None else self._squared_shift(medoids)
        self.medoids, self._loss, self._n_moves = medoids, self._search.loss, self._n_moves + 1
        self.done = self._n_moves >= self.fit.rules.max_iter
        recorder.record(loss, shift)

    def finish(self, history: list[float]) -> Outcome:
        """Label the points by the last medoids; increases caused by rounding are removed."""
        # Kernels sum the loss in another order than folds, so the last move and the end may differ.
        rows = torch.from_numpy(self.medoids)
        centers = self.fit.session.gather(rows.to(self.fit.session.layout.device))
        outcome = self.fit.finish_at(centers.double(), history, rows)
        end = outcome.history[-1]
        return replace(outcome, history=tuple(max(loss, end) for loss in outcome.history))

    def state(self) -> None:
        """Return None: kernels keep distances that depend on all moves so far."""

    def restore(self, state: Any) -> None:
        raise ValueError("a search for medoids resumes at the beginning of a run")

    def _squared_shift(self, medoids: np.ndarray) -> float:
        """Return the sum of the squared distances from the last medoids to these."""
        session = self.fit.session
        old, new = (
            session.gather(torch.from_numpy(rows).to(session.layout.device)).double()
            for rows in (self.medoids, medoids)
        )
        return float((new - old).square().sum())


def nearest_rows(session: Session, centers: Tensor) -> np.ndarray:
    """Return different rows (k,): the nearest one of each center, or another if that is taken."""
    _, closest = session.fold(NearestRows(centers.to(session.layout.dtype)))
    rows = closest.cpu().numpy().astype(np.int64)
    # Medoids must differ: two equal ones would leave a cluster without points.
    again = np.ones(len(rows), bool)
    again[np.unique(rows, return_index=True)[1]] = False
    if again.any():
        fractions = torch.arange(len(rows), dtype=torch.float64) / len(rows)
        others = session.draw_by_weight(fractions).cpu().numpy()
        rows[again] = np.setdiff1d(others, rows)[: again.sum()]
    return rows
