"""Dropout of attention weights in training: which weights are dropped, for all runs at once."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.random_numbers import (
    bernoulli_cells,
    bernoulli_count,
    stream_keys,
    uniform,
)


@dataclass(frozen=True)
class Dropout:
    """The attention weights that are dropped in a training step, with this probability each."""

    seeds: Int[Tensor, " r"]
    step: Int[Tensor, ""]
    probability: float

    def indices(self, shapes: dict[str, tuple[int, ...]], depth: int) -> dict[str, Tensor]:
        """Return the flat indices of dropped weights for each slot, in weights (r, b, q, m).

        All slots share one draw. The index one past the last weight is padding. `depth`: number
        of the unrolled layer, which changes the draw.
        """
        cells = {slot: math.prod(shape[1:]) for slot, shape in shapes.items()}
        counts = [bernoulli_count(n, self.probability) for n in cells.values()]
        u = uniform(stream_keys(self.seeds, "drops", self.step) + depth, sum(counts))
        parts = dict(zip(cells, torch.split(u, counts, dim=1), strict=True))
        return {slot: self._flat(parts[slot], n) for slot, n in cells.items()}

    def _flat(self, u: Float[Tensor, "r m"], cells: int) -> Int[Tensor, " all"]:
        which, runs = bernoulli_cells(u, cells, self.probability), len(self.seeds)
        offsets = torch.arange(runs, device=which.device)[:, None] * cells
        return torch.where(which < cells, which + offsets, runs * cells).flatten()
