"""Tasks: clustering problems drawn from mixtures, in whole batches, on the device."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.draws import keys, uniform, whole

Count = int | tuple[int, int]
"""A number, or the least and the greatest of several."""


def _normal(u: Tensor) -> Tensor:
    return math.sqrt(2) * torch.erfinv(2 * u - 1)


def _laplace(u: Tensor) -> Tensor:
    return torch.where(u < 0.5, (2 * u).log(), -(2 * (1 - u)).log())


QUANTILES: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": _normal,
    "cauchy": lambda u: torch.tan(math.pi * (u - 0.5)),
    "gumbel": lambda u: -torch.log(-torch.log(u)),
    "laplace": _laplace,
    "lognormal": _normal,
}
"""The standard member of each family at a probability; log-normal is the exponential of normal."""
FAMILIES = tuple(QUANTILES)


class Batch(NamedTuple):
    """Problems of several runs."""

    points: Float[Tensor, "r b n d"]
    centers: Float[Tensor, "r b k d"]


@dataclass(frozen=True)
class Tasks:
    """A distribution of tasks (asec:trf-train): mixtures, scaled to [0, 1] in every dimension.

    Locations are uniform in [0, 1]^d. weights: every component "equal", or "random", uniform on
    the simplex. scales: all `scale`, or "random", uniform between 0 and twice that in every
    dimension of every component. n_components: as many as clusters where None. Ranges: all
    tasks of a step have the same n_points and n_clusters; each has n_features (the columns after
    them are 0) and n_components of its own. The centers begin at different points of the task.
    """

    n_features: Count = 32
    n_clusters: Count = 10
    n_points: Count = 512
    n_components: Count | None = None
    weights: str = "equal"
    scales: str = "equal"
    scale: float = 0.1

    def __post_init__(self) -> None:
        for name in ("n_features", "n_clusters", "n_points", "n_components"):
            if getattr(self, name) is not None:
                _check_range(name, getattr(self, name))
        for name in ("weights", "scales"):
            if getattr(self, name) not in ("equal", "random"):
                raise ValueError(f'{name}: found {getattr(self, name)!r}; pass "equal" or "random"')
        if not 0 < self.scale < math.inf:
            raise ValueError(f"scale: found {self.scale!r}; pass a positive finite number")
        if _ends(self.n_points)[0] < _ends(self.n_clusters)[1]:
            raise ValueError(
                f"n_points: found {self.n_points} for {self.n_clusters} clusters; a task needs at "
                "least as many points as clusters"
            )

    @property
    def of_one_shape(self) -> bool:
        return isinstance(self.n_points, int) and isinstance(self.n_clusters, int)

    def draw(
        self, families: tuple[str, ...], seeds: Int[Tensor, " r"], step: Int[Tensor, ""], size: int
    ) -> Batch:
        """`size` tasks of a step for each run: its family, its seed."""
        n, k = self._shape(step)
        d, m = _ends(self.n_features)[1], self._most_components(k)
        u = self._numbers(keys(seeds, "tasks", step), size, (n, d, m))
        members = self._members(u, k, m)  # (r, b, n)
        spread = _taken(2 * u["scales"], members) if self.scales == "random" else 1.0
        points = _by_family(
            families, _taken(u["locations"], members), self.scale * spread, u["noise"]
        )
        points = _scaled(points)
        if not isinstance(self.n_features, int):
            used = whole(u["features"], *self.n_features).unsqueeze(-1)
            points = points * (torch.arange(d, device=points.device) < used)
        return Batch(points, _taken(points, u["starts"].topk(k, dim=-1).indices))

    def _numbers(
        self, key: Int[Tensor, " r"], size: int, sizes: tuple[int, int, int]
    ) -> dict[str, Float[Tensor, "r b ..."]]:
        """All that a batch of tasks needs, in one draw: in (0, 1), by what it is for."""
        n, d, m = sizes
        shapes: dict[str, tuple[int, ...]] = {
            "members": (n,), "locations": (m, d), "noise": (n, d), "starts": (n,),
            "scales": (m, d) if self.scales == "random" else (0,),
            "weights": (m,) if self.weights == "random" else (0,),
            "features": (1,), "components": (1,),
        }  # fmt: skip
        counts = [size * math.prod(shape) for shape in shapes.values()]
        parts = torch.split(uniform(key, sum(counts)), counts, dim=1)
        return {
            name: part.view(len(key), size, *shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def _shape(self, step: Tensor) -> tuple[int, int]:
        """How many points and clusters the tasks of a step have: the same in every run."""
        if isinstance(self.n_points, int) and isinstance(self.n_clusters, int):
            return self.n_points, self.n_clusters
        key = keys(torch.zeros(1, dtype=torch.int64, device=step.device), "sizes", step)
        u = uniform(key, 2)[0]
        n, k = whole(u[0], *_ends(self.n_points)), whole(u[1], *_ends(self.n_clusters))
        return int(n), int(k)

    def _most_components(self, n_clusters: int) -> int:
        return n_clusters if self.n_components is None else _ends(self.n_components)[1]

    def _members(self, u: dict[str, Tensor], k: int, m: int) -> Int[Tensor, "r b n"]:
        """The component of each point."""
        components = k if self.n_components is None else self.n_components
        if self.weights == "equal" and isinstance(components, int):
            return whole(u["members"], 0, components - 1)
        masses = -u["weights"].log() if self.weights == "random" else u["members"].new_ones(m)
        if not isinstance(components, int):
            used = whole(u["components"], *components)
            masses = masses * (torch.arange(m, device=masses.device) < used)
        upto = masses.cumsum(dim=-1).expand(*u["members"].shape[:2], m).contiguous()
        return torch.searchsorted(upto, u["members"] * upto[..., -1:]).clamp_(max=m - 1)


def _by_family(
    families: tuple[str, ...], centers: Tensor, spread: Tensor | float, u: Tensor
) -> Float[Tensor, "r b n d"]:
    """Location plus scale times the standard draw of each run's family."""
    if len(set(families)) > 1:
        return torch.cat(
            [
                _by_family(
                    (family,),
                    centers[run : run + 1],
                    spread if isinstance(spread, float) else spread[run : run + 1],
                    u[run : run + 1],
                )
                for run, family in enumerate(families)
            ]
        )
    points = centers + spread * QUANTILES[families[0]](u)
    return points.exp() if families[0] == "lognormal" else points


def _taken(rows: Float[Tensor, "r b m d"], which: Int[Tensor, "r b n"]) -> Tensor:
    return rows.gather(2, which.unsqueeze(-1).expand(*which.shape, rows.shape[-1]))


def _scaled(points: Float[Tensor, "r b n d"]) -> Float[Tensor, "r b n d"]:
    """Each task to [0, 1] in every dimension."""
    low, high = points.aminmax(dim=2, keepdim=True)
    return (points - low) / (high - low).clamp_(min=torch.finfo(points.dtype).tiny)


def _ends(count: Count) -> tuple[int, int]:
    return (count, count) if isinstance(count, int) else count


def _check_range(name: str, count: object) -> None:
    ends = count if isinstance(count, tuple) else (count, count)
    good = len(ends) == 2 and all(type(end) is int for end in ends) and 1 <= ends[0] <= ends[1]
    if not good:
        raise ValueError(f"{name}: found {count!r}; pass a number above 0, or (least, greatest)")
