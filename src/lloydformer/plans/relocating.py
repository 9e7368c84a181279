"""Relocating k-means: Lloyd's iterations, and relocations that are kept if they are better."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lloydformer.plans.assign import Nearest
from lloydformer.plans.contract import Block, Layers, Run, Step
from lloydformer.plans.means import Means
from lloydformer.plans.pruning import prune
from lloydformer.plans.splitting import TIE, Draws, Errors, split

GAIN = 1e-6
"""A relocation is kept if it lowers the objective by this fraction."""
STILL = 1e-12
"""Centers whose means lower the objective by no more than this fraction are settled."""


@dataclass(frozen=True)
class Relocation:
    """A whole relocation in one call; None from an engine that has no such call.

    What comes back are the centers and the objectives before and after.
    """

    centers: Tensor
    n_moved: int
    draws: Draws

    def map(self, block: Block) -> None:
        return None

    def merge(self, first: None, second: None) -> None:
        return None


@dataclass(frozen=True)
class Relocating(Means):
    """Lloyd's iterations with relocations between them, as in algorithms.relocating.

    rest: so many iterations before a relocation; None: until the centers have settled.
    """

    n_moved: int = 5
    n_draws: int = 3
    patience: int = 5
    rest: int | None = None
    seed: int = 0

    def seeded(self, seed: int) -> "Relocating":
        return replace(self, seed=seed)

    def layers(
        self, run: Run, centers: Tensor, dtype: torch.dtype, tolerance: float, most: int, first: int
    ) -> Iterator[Layers]:
        """At most so many layers; draws are made as if `first` layers had gone before."""
        done, fails, settled = 0, 0, False
        depth = 3 + min(self.n_moved, len(centers))
        while True:
            patient, left = fails < self.patience and len(centers) > 1, most - done
            short = self.rest is not None and patient and left >= self.rest + depth
            for _ in range(0 if settled else self.rest or 0 if short else left):
                step = self.step(run, centers.to(dtype), done)
                moved = self.place(step, centers)
                settled = _is_settled(step, moved - centers, tolerance)
                yield Layers(moved, step.objective, 1)
                centers, done = moved, done + 1
                if settled:
                    break
            if not patient or most - done < depth:
                return
            draws = Draws(self.seed, first + done, self.n_draws)
            found, before, after = self._relocated(run, centers, dtype, draws)
            kept = after < (1 - GAIN) * before
            centers, fails = (found, 0) if kept else (centers, fails + 1)
            yield Layers(centers, before, depth)
            done, settled = done + depth, settled and not kept

    def _relocated(
        self, run: Run, centers: Tensor, dtype: torch.dtype, draws: Draws
    ) -> tuple[Tensor, float, float]:
        """Other centers, the objective of the old ones, and that of the new partition."""
        n_moved = min(self.n_moved, len(centers))
        at_once = run(Relocation(centers, n_moved, draws))
        if at_once is not None:
            return at_once
        state = run(Errors(centers.to(dtype)))
        before, k = state[2].sum().item(), len(centers)
        grown = split(run, state, n_moved, draws, centers.to(dtype))
        if len(grown) == k:
            return centers, before, before
        sums, masses, _ = run(Nearest(grown.to(dtype)))
        grown = torch.where(masses[:, None] > 0, sums / masses[:, None], grown)
        while len(grown) > k:
            grown = prune(run, grown, dtype, TIE * before)
        sums, masses, errors = run(Errors(grown.to(dtype)))
        means = torch.where(masses[:, None] > 0, sums / masses[:, None], grown)
        less = masses * (means - grown).square().sum(dim=1)
        return means, before, (errors.sum() - less.sum()).item()


def _is_settled(step: Step, moved: Tensor, tolerance: float) -> bool:
    """Have the centers moved less than the tolerance, or without a gain worth the name?"""
    shifts = moved.square().sum(dim=1)
    less = (step.masses * shifts).sum().item()
    return shifts.sum().item() <= tolerance or less <= STILL * step.objective
