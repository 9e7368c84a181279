"""Lloyd's algorithm on batches of tasks: the baseline that training is measured against."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.random_numbers import integers, stream_keys, uniform
from lloydformer.numerics.means import means_or


@torch.no_grad()
def lloyd_path(
    points: Float[Tensor, "#r b n d"],
    centers: Float[Tensor, "r b k d"],
    seeds: Int[Tensor, " r"],
    n_steps: int,
) -> list[Float[Tensor, "r b k d"]]:
    """Return the centers before the first of `n_steps` steps and after each, as `lloyd_step` does.

    Points with a first axis of 1 are shared by all runs. On a GPU one kernel does all steps, if
    there is one for these sizes; its labels are exact, so results differ by rounding.
    """
    if has_kernel(points, centers.shape[2]):
        found = _path_on_gpu(points, centers, seeds, n_steps)
        if found is not None:
            return found
    points = points.expand(len(centers), -1, -1, -1)
    path = [centers]
    for number in range(n_steps):
        path.append(lloyd_step(points, path[-1], seeds, torch.full_like(seeds[0], number)))
    return path


def lloyd_step(
    points: Float[Tensor, "r b n d"],
    centers: Float[Tensor, "r b k d"],
    seeds: Int[Tensor, " r"],
    step: Int[Tensor, ""],
) -> Float[Tensor, "r b k d"]:
    """Move each center to the mean of its points; an empty cluster takes a random point.

    `seeds` and `step` determine the random points.
    """
    n, k = points.shape[2], centers.shape[2]
    labels = expanded_distances(points, centers).argmin(dim=-1)
    members = torch.nn.functional.one_hot(labels, k).to(points)  # (r, b, n, k)
    u = uniform(stream_keys(seeds, "empty", step), *centers.shape[1:3])
    drawn = integers(u, 0, n - 1)  # (r, b, k)
    others = points.gather(2, drawn.unsqueeze(-1).expand_as(centers))
    return means_or(members.mT @ points, members.sum(dim=2), others)


def has_kernel(points: Float[Tensor, "r b n d"], n_clusters: int) -> bool:
    """Are the points on a GPU that has a kernel for tasks of their size?"""
    if points.device.type != "cuda":
        return False
    from lloydformer.engines.cuda.batch import fits

    return fits(points[0], n_clusters)


def _path_on_gpu(
    points: Float[Tensor, "#r b n d"],
    centers: Float[Tensor, "r b k d"],
    seeds: Int[Tensor, " r"],
    n_steps: int,
) -> list[Float[Tensor, "r b k d"]] | None:
    """`lloyd_path` by the kernel; None if it declines the values of a task."""
    from lloydformer.engines.cuda.batch import declined
    from lloydformer.engines.cuda.paths import lloyd_paths

    drawn = drawn_rows(seeds, n_steps, centers.shape, points.shape[2]).flatten(1, 2)
    found = lloyd_paths(points.flatten(0, 1), centers.flatten(0, 1), drawn)
    if declined(found.n_iter):
        return None
    return [centers, *found.centers.view(n_steps, *centers.shape)]


def drawn_rows(
    seeds: Int[Tensor, " r"], n_steps: int, shape: Sequence[int], n_points: int
) -> Int[Tensor, "s r b k"]:
    """Return the rows that `lloyd_step` draws for empty clusters of centers (r, b, k, d)."""
    steps = torch.arange(n_steps, device=seeds.device).repeat_interleave(len(seeds))
    keys = stream_keys(seeds.repeat(n_steps), "empty", steps)
    return integers(uniform(keys, *shape[1:3]), 0, n_points - 1).view(n_steps, *shape[:3])
