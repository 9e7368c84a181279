"""The algorithm of LearnedKMeans: steps of a learned layer, then Lloyd's iterations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from lloydformer.data.column_statistics import fit_scaling
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained
from lloydformer.learning.symmetric.model import SymmetricModel, plan_of
from lloydformer.plans.session import Session
from lloydformer.plans.symmetric import SymmetricPlan, measure_spread
from lloydformer.solving.iterations import PlanRun
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome

MakeRun = Callable[[FitContext, int, Tensor], "PlanRun | DenseLayerRun"]


@dataclass(frozen=True)
class LearnedIterations:
    """Steps of a learned layer, then at most `max_iter` iterations of Lloyd's algorithm.

    Attributes
    ----------
    learned_run : callable
        Makes the run of the learned layer: ``learned_run(fit, restart, centers)``.
    n_steps, max_iter : int
        Number of learned steps, and of Lloyd's iterations after them at most.
    compare_to_lloyd : bool
        Also run n_steps + max_iter iterations of Lloyd's algorithm from the same start, and keep
        the better result.
    """

    learned_run: MakeRun
    n_steps: int
    max_iter: int
    compare_to_lloyd: bool
    n_starts: ClassVar[int] = 1

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield LearnedRun(self, fit, restart, centers)
            if self.compare_to_lloyd:
                # Silent: a callback expects the iterations of one run for each restart.
                alone = _limit(replace(fit, watched=False), self.n_steps + self.max_iter)
                yield PlanRun(alone, restart, centers, silent=True)


def _limit(fit: FitContext, max_iter: int) -> FitContext:
    """Return the context with this number of iterations."""
    return replace(fit, rules=replace(fit.rules, max_iter=max_iter))


class LearnedRun:
    """One start: the learned layer's run, then Lloyd's iterations from its centers."""

    silent: ClassVar[bool] = False

    def __init__(
        self, how: LearnedIterations, fit: FitContext, restart: int, centers: Tensor
    ) -> None:
        self.how, self.fit, self._restart = how, fit, restart
        self._polishes = how.n_steps == 0
        self._run: PlanRun | DenseLayerRun
        if self._polishes:
            self._run = PlanRun(_limit(fit, how.max_iter), restart, centers)
        else:
            self._run = how.learned_run(fit, restart, centers)

    @property
    def done(self) -> bool:
        return self._run.done and (self._polishes or self.how.max_iter == 0)

    @property
    def can_finish(self) -> bool:
        return self._run.can_finish or (self._polishes and self.how.n_steps > 0)

    @property
    def depends_on_session(self) -> bool:
        return self._run.depends_on_session

    def advance(self, recorder: HistoryRecorder) -> None:
        if self._run.done:
            self._begin_polish()
        self._run.advance(recorder)

    def _begin_polish(self) -> None:
        # From centers as users get them: the polish must not depend on digits that are lost.
        centers = self.fit.session.layout.round_centers(self._run.centers)
        self._run = PlanRun(_limit(self.fit, self.how.max_iter), self._restart, centers)
        self._polishes = True

    def finish(self, history: list[float]) -> Outcome:
        return self._run.finish(history)

    def state(self) -> Any:
        return self._polishes, self._run.state()

    def restore(self, state: Any) -> None:
        polishes, run = state
        if polishes and not self._polishes:
            self._begin_polish()
        self._run.restore(run)


def symmetric_run(model: SymmetricModel, session: Session, n_steps: int) -> MakeRun:
    """Return runs of the symmetric layer: a plan on the same engine as Lloyd's iterations."""

    @cache
    def plan() -> SymmetricPlan:
        return replace(plan_of(model, n_steps), spread=measure_spread(session))

    def make(fit: FitContext, restart: int, centers: Tensor) -> PlanRun:
        return PlanRun(_limit(replace(fit, plan=plan()), n_steps), restart, centers)

    return make


def dense_run(trained: Pretrained, session: Session, n_steps: int) -> MakeRun:
    """Return runs of a layer for one d and k, with columns scaled to [0, 1]."""
    layout = session.layout
    points = session.gather(torch.arange(layout.n_rows, device=layout.device))
    scaling = fit_scaling(points.cpu(), "minmax")
    weights, scaled = trained.weights.to(points), scaling.apply(points)[None, None]

    @torch.no_grad()
    def step(centers: Tensor) -> tuple[float, Tensor]:
        objective = float(smoothed_objective(points, centers.to(points), smoothing="exact"))
        inputs = scaling.apply(centers.to(points))[None, None]
        return objective, scaling.undo(trained.layer(weights, scaled, inputs)[0, 0].double())

    def make(fit: FitContext, restart: int, centers: Tensor) -> DenseLayerRun:
        return DenseLayerRun(fit, step, n_steps, centers.double())

    return make


class DenseLayerRun:
    """Steps of a learned layer on all points at once; `step` returns the objective before it."""

    silent: ClassVar[bool] = False
    depends_on_session: ClassVar[bool] = False

    def __init__(
        self,
        fit: FitContext,
        step: Callable[[Tensor], tuple[float, Tensor]],
        n_steps: int,
        centers: Tensor,
    ) -> None:
        self.fit, self.centers, self._step, self._left = fit, centers, step, n_steps
        self.can_finish = False

    @property
    def done(self) -> bool:
        return self._left == 0

    def advance(self, recorder: HistoryRecorder) -> None:
        objective, new = self._step(self.centers)
        shift = (new - self.centers).square().sum().item()
        self.centers, self._left, self.can_finish = new, self._left - 1, True
        recorder.record(objective, shift)

    def finish(self, history: list[float]) -> Outcome:
        self.fit.session.forget()
        return self.fit.finish_at(self.centers, history)

    def state(self) -> Any:
        return self.centers, self._left

    def restore(self, state: Any) -> None:
        self.centers, self._left = state
        self.can_finish = True
