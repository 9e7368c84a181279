"""A trained layer against Lloyd's algorithm, on tasks that it has not seen, over many steps."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.draws import keys
from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.stacked import StackedLayer
from lloydformer.learning.tasks import Batch, Tasks

_CELLS = 1 << 27
"""Scores of encoder self-attention that exist at a time."""


@dataclass(frozen=True)
class Comparison:
    """Log objectives of every task, before the first step and after each, for each run.

    centers: where the layer's last step has left them.
    """

    by_lloyd: Float[Tensor, "r b s"]
    by_layer: Float[Tensor, "r b s"]
    centers: Float[Tensor, "r b k d"]

    @property
    def n_tasks(self) -> int:
        return self.by_layer.shape[1]

    @property
    def lloyd(self) -> Float[Tensor, "r s"]:
        """The mean over tasks."""
        return self.by_lloyd.mean(dim=1)

    @property
    def transformer(self) -> Float[Tensor, "r s"]:
        """The mean over tasks."""
        return self.by_layer.mean(dim=1)

    def row(self) -> tuple[float, float, float]:
        """Initial, Lloyd's and the transformer's objective: a row of tab:mix-res, over all runs."""
        ends = self.lloyd[:, 0], self.lloyd[:, -1], self.transformer[:, -1]
        initial, lloyd, transformer = (float(end.mean()) for end in ends)
        return initial, lloyd, transformer


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
    batch = unseen(tasks, family, n_tasks, seed, weights.device)
    return compare_on(batch, layer, weights, n_steps, seed)


def unseen(
    tasks: Tasks,
    family: str = "normal",
    n_tasks: int = 320,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Batch:
    """Tasks that no run is trained or validated on, as those of one run."""
    seeds = _seeds(seed, device)
    return tasks.draw((family,), seeds, torch.zeros_like(seeds[0]), n_tasks)


@torch.no_grad()
def compare_on(
    batch: Batch,
    layer: StackedLayer,
    weights: Float[Tensor, "r p"],
    n_steps: int = 20,
    seed: int = 0,
) -> Comparison:
    """Both from the centers of the batch; the seed is of the points that empty clusters take."""
    seeds = _seeds(seed, weights.device)
    zero = torch.zeros_like(seeds[0])
    size = max(1, _CELLS // (len(weights) * batch.points.shape[2] ** 2))
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    parts = (torch.split(whole.to(weights), size, dim=1) for whole in batch)
    for x, c in zip(*parts, strict=True):
        by_lloyd, by_layer = [c], [c.expand(len(weights), -1, -1, -1)]
        many = x.expand(len(weights), -1, -1, -1)
        for number in range(n_steps):
            by_lloyd.append(lloyd_step(x, by_lloyd[-1], seeds, zero + number))
            by_layer.append(layer(weights, many, by_layer[-1]))
        found.append((_logs(x, by_lloyd), _logs(many, by_layer), by_layer[-1]))
    lloyd, transformer, centers = (
        torch.cat(whole, dim=1).cpu() for whole in zip(*found, strict=True)
    )
    return Comparison(lloyd.expand_as(transformer), transformer, centers)


def _seeds(seed: int, device: str | torch.device) -> Int[Tensor, " 1"]:
    never = torch.full((), -1, dtype=torch.int64, device=device)
    return keys(torch.full((1,), seed, device=device), "validation", never)


def _logs(points: Tensor, path: list[Tensor]) -> Float[Tensor, "r b s"]:
    objectives = [smoothed_objective(points, now, smoothing="exact") for now in path]
    return torch.stack(objectives, dim=-1).log()
