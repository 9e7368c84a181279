"""The loss of symmetric layers: log objectives along unrolled steps."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.lloyd import has_kernel
from lloydformer.learning.symmetric.layer import Frame, SymmetricLayer, distances, two_nearest
from lloydformer.learning.symmetric.varied_tasks import SharedBatch
from lloydformer.numerics.means import means_or

_FLOOR = 1e-4
"""Added to the objective before the logarithm: it is 0 where every point is a center."""
_SPREAD = 0.01
"""Added to the deviation of Lloyd's results: it is 0 where all starts give the same result."""
_LLOYD = 10
"""Steps of Lloyd's algorithm in `spreads`."""


def times(n_steps: int) -> list[float]:
    """Return the invariant `time` of each step: from 0 to 1."""
    return [t / max(1, n_steps - 1) for t in range(n_steps)]


def log_objective(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r"]:
    """Return the log of the mean squared distance to the nearest center plus a small floor."""
    return (distances(points, centers).min(dim=2).values.mean(dim=-1) + _FLOOR).log()


def losses(
    layer: SymmetricLayer,
    weights: Float[Tensor, "r p"],
    batch: SharedBatch,
    n_steps: int,
    earlier: float = 0.2,
) -> Float[Tensor, "b r"]:
    """Return the log objective after the last step plus `earlier` times the mean of the others."""
    frame = Frame.of(batch.points)
    points = frame.inside(batch.points)
    centers = frame.inside(batch.centers).unsqueeze(1).expand(-1, len(weights), -1, -1)
    parts = []
    for time in times(n_steps):
        centers = layer(weights, points, centers, time)
        parts.append(log_objective(points, centers))
    return parts[-1] + earlier * torch.stack(parts[:-1]).mean(dim=0)


def above_start(loss: Float[Tensor, "b r"], batch: SharedBatch) -> Float[Tensor, "b r"]:
    """Return a log objective minus that of the initial centers."""
    frame = Frame.of(batch.points)
    start = frame.inside(batch.centers).unsqueeze(1)
    return loss - log_objective(frame.inside(batch.points), start).detach()


@torch.no_grad()
def spreads(batch: SharedBatch, starts: Float[Tensor, "b r k d"]) -> Float[Tensor, " b"]:
    """Return how much Lloyd's result depends on the start: the deviation of its log objective.

    `starts`: several initial centers for each task.
    """
    frame = Frame.of(batch.points)
    points = frame.inside(batch.points)
    by_kernel = has_kernel(batch.points.unsqueeze(0), starts.shape[2])
    centers = _ends_on_gpu(batch.points, starts) if by_kernel else starts
    centers = frame.inside(centers.flatten(1, 2)).view_as(starts)
    if not by_kernel:
        for _ in range(_LLOYD):
            centers = lloyd_keeping_empty(points, centers)
    return log_objective(points, centers).std(dim=1) + _SPREAD


def _ends_on_gpu(
    points: Float[Tensor, "b n d"], starts: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k d"]:
    """Return the centers after the steps of `spreads`, by a kernel, inside of a CUDA graph too.

    The kernel gives NaN where it declines values. Of tasks, which fill the unit cube, it declines
    only those that are not finite; so nobody has to look.
    """
    from lloydformer.engines.cuda.paths import lloyd_paths

    by_run = starts.transpose(0, 1)  # (r, b, k, d): starts of a task are b apart
    ends = lloyd_paths(points, by_run.flatten(0, 1), _LLOYD).centers[-1]
    return ends.view(by_run.shape).transpose(0, 1)


def lloyd_keeping_empty(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k d"]:
    """Do one step of Lloyd's algorithm; the center of an empty cluster stays."""
    own = two_nearest(distances(points, centers)).own  # (b, r, k, n)
    sums = (own.flatten(1, 2) @ points).view(*own.shape[:3], -1)
    return means_or(sums, own.sum(dim=-1), centers)
