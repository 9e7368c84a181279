"""The course of relocating k-means: Lloyd's iterations, and relocations that are kept if better."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.contract import Sums, moved
from lloydformer.plans.relocating import Walked, Walks, relocate
from lloydformer.plans.splitting import Draws
from lloydformer.solving.descent import Descent, Outcome, Stopped
from lloydformer.solving.loop import Iteration
from lloydformer.solving.milestones import Milestones
from lloydformer.solving.rules import settled

GAIN = 1e-6
"""A relocation is kept if it lowers the objective by this fraction."""
STILL = 1e-12
"""Centers are settled if moving them lowers the objective by no more than this fraction."""


@dataclass(frozen=True)
class Relocations:
    """Lloyd's iterations with relocations between them, as in algorithms.relocating.

    Attributes
    ----------
    n_moved, n_draws : int
        Centers that a relocation moves, and draws for each split.
    patience : int
        Stop after so many relocations in a row that were not kept.
    rest : int or None
        Iterations before a relocation; None: until the centers have settled.
    seed : int
        Of the noise.
    deadline : float
        No layer begins after this time of `time.perf_counter`.
    """

    n_moved: int = 5
    n_draws: int = 3
    patience: int = 5
    rest: int | None = None
    seed: int = 0
    deadline: float = math.inf

    @property
    def limited(self) -> bool:
        """Is there a deadline?"""
        return self.deadline < math.inf

    @property
    def over(self) -> bool:
        """Is the deadline reached?"""
        return perf_counter() >= self.deadline

    def of_large(self) -> "Relocations":
        """The same for starts of large data: without relocations, which children make up for.

        With a deadline there may be no children, so starts are relocated.
        """
        return self if self.limited else replace(self, patience=0)

    def so_far(self) -> Outcome | None:
        """What is known between two starts and not yet given back: nothing."""
        return None

    def in_one_call(
        self, descent: Descent, starts: list[Tensor], seeds: range, layer: int = 0
    ) -> list[Walked] | None:
        """Run the whole walks in one engine call.

        Returns None if the engine has no such call, or if there is a callback or a deadline, which
        have to be looked at after each layer.
        """
        if descent.callback is not None or self.limited:
            return None
        task = Walks(
            torch.stack(starts), tuple(seeds), layer, self.n_moved, self.n_draws, self.patience,
            self.rest, descent.rules.max_iter, descent.tolerance,
        )  # fmt: skip
        return descent.session.run(task)

    def __call__(self, descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
        layer = number * descent.rules.max_iter
        done = self.in_one_call(descent, [centers], range(self.seed, self.seed + 1), layer)
        if done is not None:
            outcome = finished(descent, done[0].centers, done[0].history)
            if done[0].interrupted:
                raise Stopped(outcome)
            yield outcome
            return
        descent.session.forget()
        walk = Walk(self, descent, number, centers)
        try:
            walk.run()
        except KeyboardInterrupt:
            history = walk.history
            kept = finished(descent, walk.centers, history) if history else None
            raise Stopped(kept) from None
        yield finished(descent, walk.centers, walk.history)


def finished(descent: Descent, centers: Tensor, history: list[float]) -> Outcome:
    """Label the points by these centers for the last time; the history never rises.

    Rounding may let an objective rise, of a layer or of the centers as they are returned. Such a
    value is replaced by the lowest one before it, and none is below the last one.
    """
    found = descent.finish(centers, history)
    falling = np.maximum(np.minimum.accumulate(found.history), found.history[-1])
    return replace(found, history=tuple(falling.tolist()))


class Walk:
    """One start, layer by layer; `centers` and `history` are those after the last layer.

    Restarts draw different noise: that of a layer depends on `number`, of the start.
    """

    def __init__(self, how: Relocations, descent: Descent, number: int, centers: Tensor) -> None:
        self.how, self.descent, self.number, self.centers = how, descent, number, centers
        self.history: list[float] = []
        self.depth = 3 + min(how.n_moved, len(centers))
        self.fails, self.settled, self._began = 0, False, perf_counter()

    @property
    def left(self) -> int:
        """Layers that may still be run."""
        if self.how.over:
            return 0
        return self.descent.rules.max_iter - len(self.history)

    def run(self) -> None:
        descent = self.descent
        milestones = Milestones(
            descent.session, self.how, descent.rules, descent.tolerance, self.number, self.centers
        )
        if milestones.known is not None:
            self.centers, self.history, self.fails, self.settled = milestones.known
        while True:
            patient = self.fails < self.how.patience and len(self.centers) > 1
            self._iterate(patient)
            if not patient or self.left < self.depth:
                return
            self._relocate()
            milestones.reach((self.centers, self.history, self.fails, self.settled))

    def _iterate(self, patient: bool) -> None:
        rest = self.how.rest
        short = rest is not None and patient and self.left >= rest + self.depth
        for _ in range(0 if self.settled else rest or 0 if short else self.left):
            step = self.descent.plan.step(
                self.descent.session, self.centers.to(self.descent.session.layout.dtype), 0
            )
            assert isinstance(step.update, Sums)
            new = moved(step.update, self.centers, self.descent.plan.directions)
            objective, shift, less = _read(step.objective, step.update.masses, new - self.centers)
            self._note(new, objective, shift, 1)
            still = settled("shift", shift, shift, np.array([self.descent.tolerance]))
            self.settled = bool(still) or less.item() <= STILL * objective.item()
            if self.settled or self.left == 0:
                return

    def _relocate(self) -> None:
        first = self.number * self.descent.rules.max_iter
        draws = Draws(self.how.seed, first + len(self.history), self.how.n_draws)
        n_moved = min(self.how.n_moved, len(self.centers))
        found = relocate(self.descent.session, self.centers, n_moved, draws)
        kept = found.after < (1 - GAIN) * found.before
        centers = found.centers if kept else self.centers
        self.fails = 0 if kept else self.fails + 1
        self.settled = self.settled and not kept
        shift = (centers - self.centers).square().sum()[None].cpu().numpy()
        self._note(centers, np.array([found.before]), shift, self.depth)

    def _note(self, centers: Tensor, objective: np.ndarray, shift: np.ndarray, count: int) -> None:
        """Record so many layers."""
        took, self._began = (perf_counter() - self._began) / count, perf_counter()
        self.centers = centers
        for _ in range(count):
            self.history.append(objective.item())
            iteration = Iteration(len(self.history) - 1, objective, shift, took)
            self.descent.heard(self.number, iteration)


def _read(objective: Tensor, masses: Tensor, shifts: Tensor) -> tuple[np.ndarray, ...]:
    """Objective, squared shift, and how much the means lower the objective: (1,) each."""
    squares = shifts.square().sum(dim=1)
    numbers = torch.stack([objective, squares.sum(), (masses * squares).sum()])
    return tuple(numbers.cpu().numpy()[:, None])
