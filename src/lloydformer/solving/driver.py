"""The driver of every fit: restarts, callback, Ctrl-C, deadline, checkpoint and the best result.

`solve` has the loop over restarts and iterations; algorithms supply runs (`solving/run.py`). There
are other loops for k-medoids on a matrix of distances (`estimators/medoid_matrix.py`), for the pool
on a sample that finds one start (`solving/sampling.py`) and for batches of small problems
(`solving/batch`).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from torch import Tensor

from lloydformer.engines.partitioned import DistributedLabels
from lloydformer.engines.partitioned.session import PartitionedSession
from lloydformer.plans.session import Fold, Session
from lloydformer.solving.checkpoint import FitCheckpoint
from lloydformer.solving.rules import is_better, same_labelling
from lloydformer.solving.run import Callback, FitAlgorithm, FitContext, HistoryRecorder, Outcome


@dataclass(frozen=True)
class Restarts:
    """The restarts of a fit.

    Attributes
    ----------
    count : int
        Number of restarts.
    centers : iterator of Tensor of shape (k, d)
        Initial centers, `FitAlgorithm.n_starts` for each restart; computed lazily.
    """

    count: int
    centers: Iterator[Tensor]


@dataclass(frozen=True)
class Result:
    """The best outcome of a fit, with its labels.

    Attributes
    ----------
    outcome : Outcome
        Centers, inertia, history.
    labels : Tensor of shape (n,) or DistributedLabels
        The nearest center of each point.
    trimmed : Tensor of shape (n,) or None
        Points that are left out, in plans that trim.
    """

    outcome: Outcome
    labels: Tensor | DistributedLabels
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
    """Ctrl-C ended a fit.

    Attributes
    ----------
    result : Result or None
        The best result so far; None if there is none yet.
    """

    def __init__(self, result: Result | None) -> None:
        super().__init__("stopped by the user")
        self.result = result


def solve(
    fit: FitContext,
    restarts: Restarts,
    algorithm: FitAlgorithm,
    callback: Callback | None = None,
    checkpoint: FitCheckpoint | None = None,
) -> Result:
    """Run the algorithm in each restart and return the result with the smallest inertia.

    Raises
    ------
    Interrupted
        On Ctrl-C, or if the callback raises `KeyboardInterrupt`.
    """
    # Ctrl-C may come anywhere, also while initial centers are made: the outer `try` turns each into
    # `Interrupted` with the best result so far, the inner one first adds that of the current run.
    best = BestResult(fit.session)
    starts, position = restarts.centers, (0, 0)
    try:
        if checkpoint is not None:
            count = restarts.count * algorithm.n_starts
            starts, position = checkpoint.initial_centers(starts, count), checkpoint.position
            best.restore(checkpoint)
        # Initial centers of finished restarts are passed over, not computed: they are in the file.
        starts = islice(starts, position[0] * algorithm.n_starts, None)
        for restart in range(position[0], restarts.count):
            own = islice(starts, algorithm.n_starts)
            for number, run in enumerate(algorithm.runs(fit, restart, own)):
                if (restart, number) < position:
                    continue  # the interrupted fit has finished this run
                recorder = HistoryRecorder(fit, restart, None if run.silent else callback)
                if checkpoint is not None and (restart, number) == position:
                    checkpoint.restore_run(run, recorder)
                try:
                    # A run is always finished, also after the deadline: the first restart gives a
                    # result however short the time is.
                    while not run.done and not fit.is_late:
                        run.advance(recorder)
                        if checkpoint is not None:
                            checkpoint.save_run(restart, number, run, recorder)
                except KeyboardInterrupt:
                    if run.can_finish:
                        best.see(run.finish(recorder.history))
                    raise
                best.see(run.finish(recorder.history))
                if checkpoint is not None:
                    checkpoint.save_result(restart, number, *best.with_folds)
            if fit.is_late:
                break
            # A resumed fit skips finished runs; their initial centers, still in `own`, are dropped.
            deque(own, maxlen=0)
    except KeyboardInterrupt:
        raise Interrupted(best.result) from None
    result = best.result
    assert result is not None, "there is at least one restart"
    return result


class BestResult:
    """Keeps the best outcome so far, with the labels that the session has of it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._best: Result | None = None

    def see(self, outcome: Outcome) -> None:
        """Compare an outcome whose labels are still in the session.

        It must be better, and not by rounding alone: clusters that are the same but for their
        numbers do not replace those of an earlier restart.
        """
        best = self._best
        if best is not None:
            inertias = np.array([outcome.inertia]), np.array([best.inertia])
            if not is_better(*inertias).item():
                return
        # Labels are copied only for a better outcome: they are n numbers, and on a Dask cluster
        # they come from all workers.
        result = Result(outcome, self._session.labels(), self._session.trimmed())
        if best is None or not _have_same_labels(result, best):
            self._best = result

    @property
    def result(self) -> Result | None:
        """The best outcome, for weights as the user gave them."""
        if self._best is None:
            return None
        layout, outcome = self._session.layout, self._best.outcome
        inertia, *history = layout.apply_weight_unit(outcome.inertia, *outcome.history)
        if layout.weight_unit == 1:
            return self._best
        masses, certificate = outcome.masses, outcome.certificate
        if masses is not None:
            masses = tuple(mass * layout.weight_unit for mass in masses)
        given = replace(outcome, inertia=inertia, history=tuple(history), masses=masses)
        if certificate is not None:
            prices = tuple(price * layout.weight_unit for price in certificate.prices)
            given = replace(given, certificate=replace(certificate, prices=prices))
        return replace(self._best, outcome=given)

    @property
    def with_folds(self) -> tuple[Outcome, tuple[Fold, ...]]:
        """The best outcome and the folds that compute its labels, for a checkpoint."""
        assert self._best is not None
        assert isinstance(self._best.labels, DistributedLabels)
        return self._best.outcome, self._best.labels.folds

    def restore(self, checkpoint: FitCheckpoint) -> None:
        """Begin with the best outcome of an interrupted fit, if it has one."""
        if checkpoint.best is not None:
            outcome, folds = checkpoint.best
            assert isinstance(self._session, PartitionedSession)
            self._best = Result(outcome, DistributedLabels(self._session, folds))


def _have_same_labels(one: Result, other: Result) -> bool:
    """True if the clusters are equal up to their numbers."""
    k = len(one.centers)
    if isinstance(one.labels, DistributedLabels):
        return one.labels.same_as(other.labels, k)
    assert isinstance(other.labels, Tensor)
    return same_labelling((one.labels, one.trimmed), (other.labels, other.trimmed), k)
