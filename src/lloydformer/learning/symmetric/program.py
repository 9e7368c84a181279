"""What is learned: the exact objective along unrolled steps, of tasks that count alike."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.symmetric.layer import Frame, SymmetricLayer, distances, two_nearest
from lloydformer.learning.symmetric.varied import Problems

_FLOOR = 1e-4
"""A task whose points the centers can hit exactly has an objective of 0: no logarithm."""
_SPREAD = 0.01
_LLOYD = 10


def times(n_steps: int) -> list[float]:
    """The invariant `time` of each step."""
    return [t / max(1, n_steps - 1) for t in range(n_steps)]


def log_objective(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r"]:
    """Of the mean squared distance to the nearest center, with a floor."""
    return (distances(points, centers).min(dim=2).values.mean(dim=-1) + _FLOOR).log()


def losses(
    layer: SymmetricLayer,
    weights: Float[Tensor, "r p"],
    problems: Problems,
    n_steps: int,
    earlier: float = 0.2,
) -> Float[Tensor, "b r"]:
    """The log objective after the last step, and `earlier` times that of those before."""
    frame = Frame.of(problems.points)
    points = frame.inside(problems.points)
    centers = frame.inside(problems.centers).unsqueeze(1).expand(-1, len(weights), -1, -1)
    parts = []
    for time in times(n_steps):
        centers = layer(weights, points, centers, time)
        parts.append(log_objective(points, centers))
    return parts[-1] + earlier * torch.stack(parts[:-1]).mean(dim=0)


def above_start(loss: Float[Tensor, "b r"], problems: Problems) -> Float[Tensor, "b r"]:
    """How far a log objective lies above that of the start."""
    frame = Frame.of(problems.points)
    start = frame.inside(problems.centers).unsqueeze(1)
    return loss - log_objective(frame.inside(problems.points), start).detach()


@torch.no_grad()
def spreads(problems: Problems, starts: Float[Tensor, "b r k d"]) -> Float[Tensor, " b"]:
    """How much Lloyd's result depends on the start: the deviation of its log objective."""
    frame = Frame.of(problems.points)
    points = frame.inside(problems.points)
    centers = frame.inside(starts.flatten(1, 2)).view_as(starts)
    for _ in range(_LLOYD):
        centers = lloyd(points, centers)
    return log_objective(points, centers).std(dim=1) + _SPREAD


def lloyd(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k d"]:
    """One step of Lloyd's algorithm; a center without points stays."""
    own = two_nearest(distances(points, centers)).own  # (b, r, k, n)
    counts = own.sum(dim=-1, keepdim=True)
    sums = (own.flatten(1, 2) @ points).view(*own.shape[:3], -1)
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers)
