"""Varied tasks: separated and overlapping mixtures, with columns like those of real tables."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.mixtures import QUANTILES, scale_to_unit_cube, take_rows
from lloydformer.learning.random_numbers import integers, stream_keys, uniform

KINDS = ("paper", "separated", "overlapping", "columns")
_NORMAL = QUANTILES["normal"]


class SharedBatch(NamedTuple):
    """Tasks that all runs share."""

    points: Float[Tensor, "b n d"]
    centers: Float[Tensor, "b k d"]


@dataclass(frozen=True)
class VariedTasks:
    """Tasks of four kinds: task i of a batch is of kind i modulo 4.

    - paper: the paper's protocol, for any d and every family.
    - separated: components of different number, weight and shape.
    - overlapping: components so wide that few can be distinguished.
    - columns: overlapping, with columns that are skewed, binary, coarse, often zero or constant.

    Initial centers are random points; in every fourth group of four tasks they are drawn by
    k-means++. `n_features`: largest number of columns. Columns that a task does not use are 0,
    which changes no distance.
    """

    n_features: int = 64

    def draw(
        self, seed: Int[Tensor, " 1"], step: Int[Tensor, ""], shape: tuple[int, int, int]
    ) -> SharedBatch:
        """Draw the tasks of a step. `shape`: number of tasks, of points and of clusters."""
        size, n, k = shape
        most = self.n_features
        u = _uniform(stream_keys(seed, "tasks", step), size, n, k, most)
        kind = torch.arange(size, device=step.device) % len(KINDS)
        points = _mixture(u, kind, k)
        d = torch.where(kind == 3, min(6.0, most), 2.0)
        used = (d * (most / d) ** u["features"][:, 0]).round()[:, None, None]  # logarithmic
        points = points * (torch.arange(most, device=points.device) < used)
        plus = (torch.arange(size, device=step.device) // len(KINDS)) % 4 == 3
        return SharedBatch(points, _starts(points, u["starts"], k, plus))


def _uniform(key: Tensor, size: int, n: int, k: int, d: int) -> dict[str, Tensor]:
    """All uniform numbers of a batch in one draw, by what they are for."""
    m = 2 * k
    shapes = {
        "members": (n,), "locations": (m, d), "noise": (n, d), "starts": (k, n), "scales": (m, d),
        "weights": (m,), "features": (1,), "task": (10,), "map": (d, d), "types": (d,),
        "amounts": (d,),
    }  # fmt: skip
    counts = [size * math.prod(shape) for shape in shapes.values()]
    parts = torch.split(uniform(key, sum(counts))[0], counts)
    return {
        name: part.view(size, *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def _mixture(u: dict[str, Tensor], kind: Tensor, k: int) -> Float[Tensor, "b n d"]:
    t = u["task"].unbind(-1)
    paper = kind == 0
    members = _members(u, torch.where(paper, 0.5, t[0]), ~paper & (t[1] < 0.5), k)
    rough = ~paper & (t[2] < 0.5)
    spread = torch.where(rough[:, None, None], 2 * u["scales"], 1.0)
    width = 0.1 * torch.where(
        kind >= 2, 1.5 * 16 ** t[3], torch.where(paper, 1.0, 2 ** (2 * t[3] - 1))
    )
    noise, skewed = _noise(u["noise"], torch.where(kind >= 2, 0.2 + 0.4 * t[4], t[4]))
    locations, scales = take_rows(u["locations"], members), take_rows(spread, members)
    points = locations + width[:, None, None] * scales * noise
    points = torch.where(skewed[:, None, None], points.clamp(max=20.0).exp(), points)
    mapped = (~paper & (t[5] < 0.5)) | (kind == 3)
    points = torch.where(mapped[:, None, None], _mapped(points, u["map"], t[6]), points)
    points = torch.where((kind == 3)[:, None, None], _columns(points, u, t[7]), points)
    return scale_to_unit_cube(points)


def _members(u: dict[str, Tensor], many: Tensor, unequal: Tensor, k: int) -> Int[Tensor, "b n"]:
    """The component of each point, of k/2, k or 2k components with equal or random weights."""
    m = u["weights"].shape[-1]
    count = torch.where(many < 1 / 3, (k + 1) // 2, torch.where(many < 2 / 3, k, 2 * k))
    masses = torch.where(unequal[:, None], -u["weights"].log(), 1.0)
    masses = masses * (torch.arange(m, device=masses.device) < count[:, None])
    upto = masses.cumsum(dim=-1)
    return torch.searchsorted(upto, u["members"] * upto[..., -1:]).clamp_(max=m - 1)


def _noise(u: Tensor, family: Float[Tensor, " b"]) -> tuple[Tensor, Tensor]:
    """Noise of each task's family, and whether its points are exponentiated."""
    which = integers(family, 0, 4)[:, None, None]
    noise = QUANTILES["laplace"](u)
    for number, name in enumerate(("cauchy", "gumbel", "normal", "lognormal")):
        noise = torch.where(which == number, QUANTILES[name](u), noise)
    return noise, which[:, 0, 0] == 3


def _mapped(points: Tensor, u: Tensor, decay: Float[Tensor, " b"]) -> Tensor:
    """Multiply by a random matrix with a decaying spectrum, which correlates the columns."""
    d = points.shape[-1]
    powers = torch.arange(1, d + 1, device=u.device) ** -(0.3 + 1.2 * decay)[:, None]
    mean = points.mean(dim=1, keepdim=True)
    return (points - mean) * powers[:, None] @ _NORMAL(u)


def _columns(points: Tensor, u: dict[str, Tensor], mixed: Float[Tensor, " b"]) -> Tensor:
    """Transform each column by its own type, or by the task's most common type."""
    z = points - points.mean(dim=1, keepdim=True)
    z = z / z.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-12)
    amount = u["amounts"][:, None]  # (b, 1, d)
    cut = _NORMAL(amount)
    main = u["task"][:, 8:9]
    share = u["types"]
    which = torch.where(
        share < mixed[:, None], main, (share - mixed[:, None]) / (1 - mixed[:, None])
    )
    which = integers(which.clamp(0, 1 - 1e-6), 0, 7)[:, None]
    skewed = ((0.5 + 1.5 * amount) * z.clamp(-6, 6)).exp()
    kinds = (
        z, skewed, skewed, (z > cut).to(z),
        (z * (0.5 + 2 * amount)).round(), (z - cut).clamp(min=0),
        z.abs() ** (1 + 2 * amount), z.clamp(-1, 1),
    )  # fmt: skip
    for number, column in enumerate(kinds[1:], start=1):
        z = torch.where(which == number, column, z)
    return torch.where(u["types"][:, None] > 0.95, 0.0, z)


def _starts(points: Tensor, u: Tensor, k: int, plus: Tensor) -> Float[Tensor, "b k d"]:
    """Initial centers: distinct points drawn uniformly, or by k-means++ where `plus`.

    To draw a point with probability proportional to w, take the smallest e / w, with e
    exponentially distributed.
    """
    e = -u.log()  # (b, k, n)
    random = take_rows(points, (-e[:, 0]).topk(k, dim=-1).indices)
    near = torch.full_like(e[:, 0], 1e30)
    chosen: list[Tensor] = []
    for number in range(k):
        best = torch.where(near > 0, e[:, number] / near, torch.inf).argmin(dim=-1)
        chosen.append(take_rows(points, best[:, None]))
        near = torch.minimum(near, (points - chosen[-1]).square().sum(dim=-1))
    return torch.where(plus[:, None, None], torch.cat(chosen, dim=1), random)
