"""A trained layer against Lloyd's algorithm, on tasks that it has not seen, over many steps."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.draws import keys
from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.stacked import StackedLayer
from lloydformer.learning.tasks import Tasks

_CELLS = 1 << 27
"""Scores of encoder self-attention that exist at a time."""


@dataclass(frozen=True)
class Comparison:
    """Mean log objectives over tasks, before the first step and after each, for each run."""

    lloyd: Float[Tensor, "r s"]
    transformer: Float[Tensor, "r s"]
    n_tasks: int

    def row(self) -> tuple[float, float, float]:
        """Initial, Lloyd's and the transformer's objective: a row of tab:mix-res, over all runs."""
        ends = self.lloyd[:, 0], self.lloyd[:, -1], self.transformer[:, -1]
        initial, lloyd, transformer = (float(end.mean()) for end in ends)
        return initial, lloyd, transformer


@torch.no_grad()
def compare(
    layer: StackedLayer,
    weights: Float[Tensor, "r p"],
    tasks: Tasks,
    family: str = "normal",
    n_tasks: int = 320,
    n_steps: int = 20,
    seed: int = 0,
) -> Comparison:
    """Both from the same centers, on the same tasks for every run."""
    zero = torch.zeros((), dtype=torch.int64, device=weights.device)
    seeds = keys(torch.full((1,), seed, device=weights.device), "validation", zero - 1)
    points, centers = tasks.draw((family,), seeds, zero, n_tasks)
    size = max(1, _CELLS // (len(weights) * points.shape[2] ** 2))
    steps: list[list[Tensor]] = [[], []]
    parts = (torch.split(whole.to(weights), size, dim=1) for whole in (points, centers))
    for x, c in zip(*parts, strict=True):
        by_lloyd, by_layer = [c], [c.expand(len(weights), -1, -1, -1)]
        many = x.expand(len(weights), -1, -1, -1)
        for number in range(n_steps):
            by_lloyd.append(lloyd_step(x, by_lloyd[-1], seeds, zero + number))
            by_layer.append(layer(weights, many, by_layer[-1]))
        steps[0].append(torch.stack([_log(x, now) for now in by_lloyd], dim=-1))
        steps[1].append(torch.stack([_log(many, now) for now in by_layer], dim=-1))
    lloyd, transformer = (torch.cat(parts, dim=1).mean(dim=1).cpu() for parts in steps)
    return Comparison(lloyd.expand_as(transformer), transformer, n_tasks)


def _log(points: Tensor, centers: Tensor) -> Float[Tensor, "r b"]:
    return smoothed_objective(points, centers, smoothing="exact").log()
