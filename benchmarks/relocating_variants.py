"""Relocating k-means with something left out or changed, for its study."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.numerics.noise import gumbel
from lloydformer.plans.relocating import (
    ClusterErrors,
    NoiseDraws,
    RelocationResult,
    remove_cheapest_center,
    split_clusters,
)
from lloydformer.plans.session import Session


def relocate_without_steps(
    session: Session, centers: Tensor, n_moved: int, draws: NoiseDraws
) -> RelocationResult:
    """A relocation without look-ahead: without the two steps of Lloyd's within it."""
    k, dtype = len(centers), session.layout.dtype
    known = session.fold(ClusterErrors(centers.to(dtype)))
    grown = split_clusters(session, known, n_moved, draws, centers.to(dtype))
    while len(grown) > k:
        grown = remove_cheapest_center(session, grown)
    after = session.fold(ClusterErrors(grown.to(dtype)))[2].sum().item()
    return RelocationResult(grown, known[2].sum().item(), after)


class Hasty(lf.RelocatingKMeans):
    """Relocates without look-ahead."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        with patch("lloydformer.solving.relocations.relocate", relocate_without_steps):
            return super().fit(X, y, sample_weight)


@contextmanager
def silence() -> Any:
    """No noise: the worst clusters are split, at their farthest points."""

    def zeros(*of: Any) -> Tensor:
        return torch.zeros_like(gumbel(*of))

    with patch("lloydformer.plans.relocating.gumbel", zeros):
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
    "no look-ahead": lambda k, seed: Hasty(k, engine="chunked", random_state=seed),
    "1 draw": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_draws": 1}, random_state=seed
    ),
    "8 draws": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_draws": 8}, random_state=seed
    ),
    "1 moved": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_moved": 1}, random_state=seed
    ),
    "2 moved": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_moved": 2}, random_state=seed
    ),
    "8 moved": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_moved": 8}, random_state=seed
    ),
    "rest 2": lambda k, seed: lf.RelocatingKMeans(
        k, search_options={"n_iter_between": 2}, random_state=seed
    ),
    "patience 2": lambda k, seed: lf.RelocatingKMeans(k, patience=2, random_state=seed),
    "patience 10": lambda k, seed: lf.RelocatingKMeans(k, patience=10, random_state=seed),
    "random start": lambda k, seed: lf.RelocatingKMeans(
        k, init="random", n_init=1, random_state=seed
    ),
}
