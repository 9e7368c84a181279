"""The noise of a layer, from the seeds of the problems in a batch."""

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import torch
from torch import Tensor

from lloydformer.circuits.layer import Noise
from lloydformer.numerics import noise
from lloydformer.numerics.checks import check_count

Seed = SupportsIndex | Sequence[SupportsIndex] | None
"""An integer, or one for each problem of a batch; integers of NumPy are accepted."""


def layer_noise(seed: Seed, layer: int, points: Tensor) -> Noise | None:
    """Return a function that draws the Gumbel noise of a layer, or None without a seed.

    The noise is a pure function of (seed, layer, slot, cluster, row). Problem i of a batch draws
    with seed + i, or with the i-th of several seeds.
    """
    if seed is None:
        return None
    seeds = _seeds(seed, points.shape[0] if points.ndim == 3 else 1)

    def draw(slot: str, scores: Tensor) -> Tensor:
        queries_are_points = slot in ("encoder_cross", "affinity")
        n_clusters, n_rows = scores.shape[-2:][::-1] if queries_are_points else scores.shape[-2:]
        rows = torch.arange(n_rows, device=scores.device)
        draws = torch.stack([noise.gumbel(s, layer, slot, n_clusters, rows) for s in seeds])
        return (draws.mT if queries_are_points else draws).to(scores.dtype).reshape(scores.shape)

    return draw


def _seeds(seed: SupportsIndex | Sequence[SupportsIndex], n_problems: int) -> list[int]:
    if isinstance(seed, Iterable):
        seeds = [check_count("seed", s, least=0) for s in seed]
    else:
        seeds = [check_count("seed", seed, least=0) + i for i in range(n_problems)]
    if len(seeds) != n_problems:
        raise ValueError(f"seed: found {len(seeds)} for {n_problems} problems; pass one for each")
    return seeds
