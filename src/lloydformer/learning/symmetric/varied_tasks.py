"""Varied tasks: separated and overlapping mixtures, with columns like those of real tables.

A layer that serves every n, d and k must see more than the paper's mixtures. All choices below
were made by hand; `benchmarks/symmetric.py` measures the trained layer on OpenML sets.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.random_numbers import integers, stream_keys, uniform_parts
from lloydformer.learning.tasks import QUANTILES, draw_components, scale_to_unit_cube, take_rows

KINDS = ("paper", "separated", "overlapping", "columns")
_NORMAL = QUANTILES["normal"]


class SharedBatch(NamedTuple):
    """Tasks that all runs share."""

    points: Float[Tensor, "b n d"]
    centers: Float[Tensor, "b k d"]


def draw_varied_tasks(
    seed: Int[Tensor, " 1"], step: Int[Tensor, ""], shape: tuple[int, int, int], n_features: int
) -> SharedBatch:
    """Draw tasks of four kinds: task i of a batch is of kind i modulo 4.

    - paper: the paper's protocol, for any d and every family.
    - separated: components of different number, weight and shape.
    - overlapping: components so wide that few can be distinguished.
    - columns: overlapping, with columns that are skewed, binary, coarse, often zero or constant.

    Initial centers are random points; in every fourth group of four tasks they are drawn by
    k-means++. `shape`: number of tasks, of points and of clusters. `n_features`: largest number of
    columns. Columns that a task does not use are 0, which changes no distance.
    """
    size, n, k = shape
    m, d = 2 * k, n_features
    # The order of the parts decides which numbers each of them gets.
    shapes: dict[str, tuple[int, ...]] = {
        "members": (n,),
        "locations": (m, d),
        "noise": (n, d),
        "starts": (k, n),
        "scales": (m, d),
        "weights": (m,),
        "features": (1,),
        "task": (10,),
        "map": (d, d),
        "types": (d,),
        "amounts": (d,),
    }
    parts = uniform_parts(stream_keys(seed, "tasks", step), size, shapes)
    u = {name: part[0] for name, part in parts.items()}
    number = torch.arange(size, device=step.device)
    kind = number % len(KINDS)
    points = _draw_points(u, kind, k)
    least = torch.where(kind == 3, min(6.0, d), 2.0)
    # The number of used columns is uniform on a logarithmic scale from `least` to d.
    used = (least * (d / least) ** u["features"][:, 0]).round()[:, None, None]
    points = points * (torch.arange(d, device=points.device) < used)
    by_distance = (number // len(KINDS)) % 4 == 3
    return SharedBatch(points, _draw_centers(points, u["starts"], k, by_distance))


def _draw_points(u: dict[str, Tensor], kind: Int[Tensor, " b"], k: int) -> Float[Tensor, "b n d"]:
    """Return points in the unit cube."""
    # random numbers of each task, named by what they decide; the last one is not used
    of_task = u["task"].unbind(-1)
    u_count, u_masses, u_scales, u_width, u_family, u_map, u_decay, *rest = of_task
    fraction, most_common, _ = rest
    paper, wide, columns = kind == 0, kind >= 2, kind == 3
    # k/2, k or 2k components; those of the paper are k with equal masses.
    share = torch.where(paper, 0.5, u_count)
    count = torch.where(share < 1 / 3, (k + 1) // 2, torch.where(share < 2 / 3, k, 2 * k))
    unequal = ~paper & (u_masses < 0.5)
    masses = torch.where(unequal[:, None], -u["weights"].log(), 1.0)
    masses = masses * (torch.arange(2 * k, device=masses.device) < count[:, None])
    members = draw_components(u["members"], masses)
    # Scales: 0.1 in the paper, else 0.05 to 0.2, or 0.15 to 2.4 where components overlap; half of
    # the tasks have another scale for each column of each component.
    rough = ~paper & (u_scales < 0.5)
    spread = torch.where(rough[:, None, None], 2 * u["scales"], 1.0)
    narrow = torch.where(paper, 1.0, 2 ** (2 * u_width - 1))
    width = 0.1 * torch.where(wide, 1.5 * 16**u_width, narrow)
    # 0 to 4: Cauchy, Gumbel, normal, log-normal, Laplace. Wide tasks are Gumbel or normal.
    family = integers(torch.where(wide, 0.2 + 0.4 * u_family, u_family), 0, 4)[:, None, None]
    noise = QUANTILES["laplace"](u["noise"])
    for number, name in enumerate(("cauchy", "gumbel", "normal", "lognormal")):
        noise = torch.where(family == number, QUANTILES[name](u["noise"]), noise)
    locations, scales = take_rows(u["locations"], members), take_rows(spread, members)
    points = locations + width[:, None, None] * scales * noise
    points = torch.where(family == 3, points.clamp(max=20.0).exp(), points)
    # A random matrix with a decaying spectrum correlates the columns.
    correlated = (~paper & (u_map < 0.5)) | columns
    rank = torch.arange(1, points.shape[-1] + 1, device=points.device)
    powers = rank ** -(0.3 + 1.2 * u_decay)[:, None]
    centered = points - points.mean(dim=1, keepdim=True)
    turned = centered * powers[:, None] @ _NORMAL(u["map"])
    points = torch.where(correlated[:, None, None], turned, points)
    transformed = _transform_columns(points, u, most_common[:, None], fraction[:, None])
    points = torch.where(columns[:, None, None], transformed, points)
    return scale_to_unit_cube(points)


def _transform_columns(
    points: Float[Tensor, "b n d"],
    u: dict[str, Tensor],
    most_common: Float[Tensor, "b 1"],
    fraction: Float[Tensor, "b 1"],
) -> Float[Tensor, "b n d"]:
    """Transform each column by its own type, or by the task's most common type.

    `fraction`: that of the columns that have the most common type.
    """
    z = points - points.mean(dim=1, keepdim=True)
    z = z / z.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-12)
    amount = u["amounts"][:, None]  # (b, 1, d)
    cut = _NORMAL(amount)
    own = u["types"]
    which = torch.where(own < fraction, most_common, (own - fraction) / (1 - fraction))
    which = integers(which.clamp(0, 1 - 1e-6), 0, 7)[:, None]
    skewed = ((0.5 + 1.5 * amount) * z.clamp(-6, 6)).exp()
    types = (
        z,
        skewed,
        skewed,  # twice: the most frequent type
        (z > cut).to(z),
        (z * (0.5 + 2 * amount)).round(),
        (z - cut).clamp(min=0),
        z.abs() ** (1 + 2 * amount),
        z.clamp(-1, 1),
    )
    for number, column in enumerate(types[1:], start=1):
        z = torch.where(which == number, column, z)
    return torch.where(own[:, None] > 0.95, 0.0, z)  # one column of twenty is constant


def _draw_centers(
    points: Float[Tensor, "b n d"], u: Float[Tensor, "b k n"], k: int, by_distance: Tensor
) -> Float[Tensor, "b k d"]:
    """Return initial centers: distinct points drawn uniformly, or by k-means++ if `by_distance`.

    To draw a point with probability proportional to w, take the smallest e / w, with e
    exponentially distributed: no running sum, and all tasks at once.
    """
    e = -u.log()
    random = take_rows(points, (-e[:, 0]).topk(k, dim=-1).indices)
    near = torch.full_like(e[:, 0], 1e30)  # of the first center: all points alike
    chosen: list[Tensor] = []
    for number in range(k):
        best = torch.where(near > 0, e[:, number] / near, torch.inf).argmin(dim=-1)
        chosen.append(take_rows(points, best[:, None]))
        near = torch.minimum(near, (points - chosen[-1]).square().sum(dim=-1))
    return torch.where(by_distance[:, None, None], torch.cat(chosen, dim=1), random)
