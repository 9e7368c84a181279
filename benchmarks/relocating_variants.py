"""Relocating k-means with something left out or changed, for its study."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.numerics.noise import gumbel
from lloydformer.plans.contract import Run
from lloydformer.plans.pruning import prune
from lloydformer.plans.relocating import Relocating
from lloydformer.plans.splitting import Draws, Errors, split


@dataclass(frozen=True)
class Hasty(Relocating):
    """No look-ahead: neither of the two steps of Lloyd's within a relocation."""

    def _relocated(
        self, run: Run, centers: Tensor, dtype: torch.dtype, draws: Draws
    ) -> tuple[Tensor, float, float]:
        state = run(Errors(centers.to(dtype)))
        before, k = state[2].sum().item(), len(centers)
        grown = split(run, state, min(self.n_moved, k), draws, centers.to(dtype))
        while len(grown) > k:
            grown = prune(run, grown, dtype)
        return grown, before, run(Errors(grown.to(dtype)))[2].sum().item()


class Impatient(lf.RelocatingKMeans):
    """The estimator of the plan above."""

    def _plan(self, rng: Any = None) -> Relocating:
        return Hasty(**vars(super()._plan(rng)))


@contextmanager
def silence() -> Any:
    """No noise: the worst clusters are split, at their farthest points."""

    def zeros(*of: Any) -> Tensor:
        return torch.zeros_like(gumbel(*of))

    with patch("lloydformer.plans.splitting.gumbel", zeros):
        yield


class Silent(lf.RelocatingKMeans):
    """Without noise every relocation of the same centers is the same: one is enough."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        with silence():
            return super().fit(X, y, sample_weight)


Make = Callable[[int, int], Any]
VARIANTS: dict[str, Make] = {
    "as it is": lambda k, seed: lf.RelocatingKMeans(k, random_state=seed),
    "no Gumbel": lambda k, seed: Silent(k, engine="chunked", patience=1, random_state=seed),
    "no look-ahead": lambda k, seed: Impatient(k, engine="chunked", random_state=seed),
    "1 draw": lambda k, seed: lf.RelocatingKMeans(k, n_draws=1, random_state=seed),
    "8 draws": lambda k, seed: lf.RelocatingKMeans(k, n_draws=8, random_state=seed),
    "1 moved": lambda k, seed: lf.RelocatingKMeans(k, n_moved=1, random_state=seed),
    "2 moved": lambda k, seed: lf.RelocatingKMeans(k, n_moved=2, random_state=seed),
    "8 moved": lambda k, seed: lf.RelocatingKMeans(k, n_moved=8, random_state=seed),
    "rest 2": lambda k, seed: lf.RelocatingKMeans(k, rest=2, random_state=seed),
    "patience 2": lambda k, seed: lf.RelocatingKMeans(k, patience=2, random_state=seed),
    "patience 10": lambda k, seed: lf.RelocatingKMeans(k, patience=10, random_state=seed),
    "random start": lambda k, seed: lf.RelocatingKMeans(
        k, init="random", n_init=1, random_state=seed
    ),
}
