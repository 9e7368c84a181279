"""Relocating k-means: Lloyd's iterations, and relocations that are kept if they are better."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.numerics.search_constants import RELOCATION_GAIN, SETTLED
from lloydformer.plans.contract import Sums, apply_update
from lloydformer.plans.missing import IgnoringPlan, relocate_masked
from lloydformer.plans.relocating import (
    NoiseDraws,
    RelocatingIterations,
    RelocatingResult,
    relocate,
)
from lloydformer.solving.rules import is_settled
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome


@dataclass(frozen=True)
class Relocations:
    """Lloyd's iterations with relocations between them, as in algorithms.relocating.

    Attributes
    ----------
    n_moved : int
        Number of centers that a relocation moves.
    n_draws : int
        Number of points that are drawn for each split; the best one is used.
    patience : int
        Stop after this number of relocations in a row that were not kept.
    rest : int or None
        Number of iterations before each relocation; None: until the centers have settled.
    seed : int
        Random seed of the noise.
    """

    n_moved: int = 5
    n_draws: int = 3
    patience: int = 5
    rest: int | None = None
    seed: int = 0
    n_starts: ClassVar[int] = 1

    def run_by_engine(
        self, fit: FitContext, starts: list[Tensor], seeds: range, layer: int = 0
    ) -> list[RelocatingResult] | None:
        """Run all layers from some starts in one engine call.

        Returns None if the engine has no such call, or if each layer is watched.
        """
        if fit.watched:
            return None
        task = RelocatingIterations(
            torch.stack(starts),
            tuple(seeds),
            layer,
            self.n_moved,
            self.n_draws,
            self.patience,
            self.rest,
            fit.rules.max_iter,
            fit.tolerance,
        )
        return fit.session.run(task)

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield RelocationRun(self, fit, restart, centers)


def finish_falling(fit: FitContext, centers: Tensor, history: list[float]) -> Outcome:
    """Label the points by these centers for the last time; the history never rises.

    Rounding may make an objective rise, during the run or at its end. So each value is replaced by
    the lowest one up to it, and values below the last one are raised to that.
    """
    outcome = fit.finish_at(centers, history)
    falling = np.maximum(np.minimum.accumulate(outcome.history), outcome.history[-1])
    return replace(outcome, history=tuple(falling.tolist()))


class RelocationRun:
    """One start: phases of Lloyd's iterations, with a relocation after each.

    Parameters
    ----------
    how : Relocations
        The parameters.
    fit : FitContext
        Plan, session and rules of the fit; `fit.rules.max_iter` limits the layers of this run.
    restart : int
        Number of the restart, from 0; the noise of a layer depends on it.
    centers : Tensor of shape (k, d)
        The initial centers, in float64.
    whole : bool
        Try first to run all layers in one engine call.
    """

    silent: ClassVar[bool] = False

    def __init__(
        self,
        how: Relocations,
        fit: FitContext,
        restart: int,
        centers: Tensor,
        *,
        whole: bool = True,
    ) -> None:
        self.how, self.fit, self.centers, self.done = how, fit, centers, False
        # Layers that a relocation counts for: those of its circuit (docs/relocating-circuit.md).
        self._depth = 3 + min(how.n_moved, len(centers))
        self._first_layer = restart * fit.rules.max_iter
        self._n_layers, self._n_failed, self._settled = 0, 0, False
        self._whole, self._begun = whole, False
        self._steps_left = 0
        self._begin_phase()

    @property
    def can_finish(self) -> bool:
        return self._n_layers > 0

    @property
    def depends_on_session(self) -> bool:
        return self._n_layers > 0 and not self.done

    def advance(self, recorder: HistoryRecorder) -> None:
        if not self._begun:
            self._begun = True
            if self._whole:
                seeds = range(self.how.seed, self.how.seed + 1)
                found = self.how.run_by_engine(self.fit, [self.centers], seeds, self._first_layer)
                if found is not None:
                    self.centers, self.done = found[0].centers, True
                    self._n_layers += len(found[0].history)
                    recorder.history += found[0].history
                    if found[0].interrupted:
                        raise KeyboardInterrupt
                    return
            self.fit.session.forget()
        if self._steps_left > 0:
            self._iterate(recorder)
        else:
            self._relocate(recorder)
            self._begin_phase()
        if self._steps_left == 0 and not self._may_relocate:
            self.done = True

    @property
    def _layers_left(self) -> int:
        return self.fit.rules.max_iter - self._n_layers

    @property
    def _is_patient(self) -> bool:
        return self._n_failed < self.how.patience and len(self.centers) > 1

    @property
    def _may_relocate(self) -> bool:
        return self._is_patient and self._layers_left >= self._depth

    def _begin_phase(self) -> None:
        """Set the number of iterations until the next relocation, or until the end of the run."""
        # `rest` is used only if a relocation can follow. Otherwise all layers that remain are
        # Lloyd's, so that a run ends only when its centers have settled or max_iter is reached.
        rest, left = self.how.rest, self._layers_left
        if self._settled:
            self._steps_left = 0
        elif rest is not None and self._is_patient and left >= rest + self._depth:
            self._steps_left = rest
        else:
            self._steps_left = left
        self.done = self._steps_left == 0 and not self._may_relocate

    def _iterate(self, recorder: HistoryRecorder) -> None:
        """Run one of Lloyd's iterations."""
        fit = self.fit
        step = fit.plan.step(fit.session, self.centers.to(fit.session.layout.dtype), 0)
        assert isinstance(step.update, Sums)
        new = apply_update(step.update, self.centers, fit.plan.directions)
        squares = (new - self.centers).square().sum(dim=1)
        # How much the means lower the objective: sum of m_j |new_j - old_j|^2.
        gain = (step.update.masses * squares).sum()
        numbers = torch.stack([step.objective, squares.sum(), gain]).cpu().numpy()
        objective, shift, less = numbers[:, None]  # (1,) each, as the rules take them
        still = is_settled("shift", shift, shift, np.array([fit.tolerance]))
        self._settled = bool(still) or less.item() <= SETTLED * objective.item()
        self.centers, self._n_layers = new, self._n_layers + 1
        ends_phase = self._settled or self._layers_left == 0
        self._steps_left = 0 if ends_phase else self._steps_left - 1
        recorder.record(objective.item(), shift.item())

    def _relocate(self, recorder: HistoryRecorder) -> None:
        """Relocate some centers; keep the result if the objective is lower."""
        layer = self._first_layer + self._n_layers
        draws = NoiseDraws(self.how.seed, layer, self.how.n_draws)
        n_moved = min(self.how.n_moved, len(self.centers))
        masked = isinstance(self.fit.plan, IgnoringPlan)
        propose = relocate_masked if masked else relocate
        proposed = propose(self.fit.session, self.centers, n_moved, draws)
        kept = proposed.after < (1 - RELOCATION_GAIN) * proposed.before
        centers = proposed.centers if kept else self.centers
        self._n_failed = 0 if kept else self._n_failed + 1
        # A relocation that was not kept leaves the settled centers: the next one follows at once.
        self._settled = self._settled and not kept
        shift = (centers - self.centers).square().sum().item()
        self.centers, self._n_layers = centers, self._n_layers + self._depth
        recorder.record(proposed.before, shift, self._depth)  # last: a callback may raise

    def finish(self, history: list[float]) -> Outcome:
        return finish_falling(self.fit, self.centers, history)

    def state(self) -> Any:
        counts = (self._n_layers, self._n_failed, self._steps_left)
        return self.centers, counts, self._settled, self.done

    def restore(self, state: Any) -> None:
        self.centers, counts, self._settled, self.done = state
        self._n_layers, self._n_failed, self._steps_left = counts
        self._begun = True
