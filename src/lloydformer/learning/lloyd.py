"""Lloyd's algorithm on batches of tasks: the baseline that training is measured against."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.random_numbers import integers, stream_keys, uniform
from lloydformer.numerics.clusters import means_or


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
    steps = torch.arange(n_steps, device=seeds.device)
    if has_kernel(points, centers.shape[2]):
        from lloydformer.engines.cuda.batch import has_bad_values, run_lloyd_paths

        # 20 steps are 15 times faster than with torch, one step takes as long
        # (benchmarks/results/gpu_algorithms.json)
        drawn = draw_rows(seeds, steps, centers.shape, points.shape[2]).flatten(1, 2)
        path = run_lloyd_paths(points.flatten(0, 1), centers.flatten(0, 1), drawn)
        if not has_bad_values(path.n_iter):  # it declines values that are too large for it
            return [centers, *path.centers.view(n_steps, *centers.shape)]
    points = points.expand(len(centers), -1, -1, -1)
    found = [centers]
    for step in steps:
        found.append(lloyd_step(points, found[-1], seeds, step))
    return found


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
    # A row is drawn for every cluster, even if no cluster is empty: then the numbers depend on
    # nothing but seed and step, and the kernel gets the same ones.
    drawn = draw_rows(seeds, step[None], centers.shape, n)[0]  # (r, b, k)
    others = points.gather(2, drawn.unsqueeze(-1).expand_as(centers))
    return means_or(members.mT @ points, members.sum(dim=2), others)


def has_kernel(points: Float[Tensor, "r b n d"], n_clusters: int) -> bool:
    """Return True if the points are on a GPU that has a kernel for tasks of their size."""
    if points.device.type != "cuda":
        return False
    from lloydformer.engines.cuda.batch import has_batch_kernel

    return has_batch_kernel(points[0], n_clusters)


def draw_rows(
    seeds: Int[Tensor, " r"], steps: Int[Tensor, " s"], shape: Sequence[int], n_points: int
) -> Int[Tensor, "s r b k"]:
    """Draw the points that empty clusters take, for centers of this shape (r, b, k, d)."""
    runs, tasks, k = shape[:3]
    keys = stream_keys(seeds.repeat(len(steps)), "empty", steps.repeat_interleave(runs))
    return integers(uniform(keys, tasks, k), 0, n_points - 1).view(len(steps), runs, tasks, k)
