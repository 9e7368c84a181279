"""Points of mixture distributions, from uniform random numbers."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
"""Quantile function of each standard family. Log-normal points are exponentials of normal ones."""


def mixture_points(
    families: tuple[str, ...],
    locations: Float[Tensor, "r b n d"],
    scales: Tensor | float,
    u: Float[Tensor, "r b n d"],
) -> Float[Tensor, "r b n d"]:
    """Return location + scale * quantile(u), with the family of each run."""
    if len(set(families)) > 1:
        return torch.cat(
            [
                mixture_points(
                    (family,),
                    locations[run : run + 1],
                    scales if isinstance(scales, float) else scales[run : run + 1],
                    u[run : run + 1],
                )
                for run, family in enumerate(families)
            ]
        )
    points = locations + scales * QUANTILES[families[0]](u)
    return points.exp() if families[0] == "lognormal" else points


def take_rows(rows: Float[Tensor, "*b m d"], which: Int[Tensor, "*b n"]) -> Float[Tensor, "*b n d"]:
    """Return the rows with these indices, for each problem of a batch."""
    return rows.gather(-2, which.unsqueeze(-1).expand(*which.shape, rows.shape[-1]))


def scale_to_unit_cube(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
    """Scale every column of every task to [0, 1]; constant columns become 0."""
    low, high = points.aminmax(dim=-2, keepdim=True)
    return (points - low) / (high - low).clamp_(min=torch.finfo(points.dtype).tiny)
