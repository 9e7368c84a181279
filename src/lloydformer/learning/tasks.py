"""Tasks: clustering problems drawn from mixtures, in whole batches, on the device."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.random_numbers import integers, stream_keys, uniform, uniform_parts
from lloydformer.numerics.checks import require

# A number, or a range (smallest, largest) to draw it from.
Count = int | tuple[int, int]


def _normal(u: Tensor) -> Tensor:
    return math.sqrt(2) * torch.erfinv(2 * u - 1)


# Quantile function of each standard family. Log-normal points are exponentials of normal ones,
# taken after location and scale.
QUANTILES: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": _normal,
    "cauchy": lambda u: torch.tan(math.pi * (u - 0.5)),
    "gumbel": lambda u: -torch.log(-torch.log(u)),
    "laplace": lambda u: torch.where(u < 0.5, (2 * u).log(), -(2 * (1 - u)).log()),
    "lognormal": _normal,
}


def mixture_points(
    families: tuple[str, ...],
    locations: Float[Tensor, "r b n d"],
    scales: Float[Tensor, "#r #b #n #d"],
    u: Float[Tensor, "r b n d"],
) -> Float[Tensor, "r b n d"]:
    """Return location + scale * quantile(u), with the family of each run."""
    if len(set(families)) == 1:
        points = locations + scales * QUANTILES[families[0]](u)
        return points.exp() if families[0] == "lognormal" else points
    parts = (torch.split(part, 1) for part in (locations, scales.expand_as(u), u))
    runs = zip(families, *parts, strict=True)
    return torch.cat([mixture_points((family,), *run) for family, *run in runs])


def take_rows(rows: Float[Tensor, "*b m d"], which: Int[Tensor, "*b n"]) -> Float[Tensor, "*b n d"]:
    """Return the rows with these indices, for each problem of a batch."""
    return rows.gather(-2, which.unsqueeze(-1).expand(*which.shape, rows.shape[-1]))


def draw_components(u: Float[Tensor, "*b n"], masses: Float[Tensor, "*b m"]) -> Int[Tensor, "*b n"]:
    """Return the component of each point, drawn with probability proportional to its mass."""
    upto = masses.cumsum(dim=-1)
    last = masses.shape[-1] - 1
    return torch.searchsorted(upto, u * upto[..., -1:]).clamp_(max=last)


def scale_to_unit_cube(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
    """Scale every column of every task to [0, 1]; constant columns become 0."""
    low, high = points.aminmax(dim=-2, keepdim=True)
    return (points - low) / (high - low).clamp_(min=torch.finfo(points.dtype).tiny)


class Batch(NamedTuple):
    """Tasks of several runs: r runs, b tasks each."""

    points: Float[Tensor, "r b n d"]
    centers: Float[Tensor, "r b k d"]


@dataclass(frozen=True)
class Tasks:
    """Describe a distribution of clustering tasks.

    A task is a mixture, as in asec:trf-train of the paper, scaled to [0, 1] in every dimension.
    The locations of its components are uniform in [0, 1]^d, and its initial centers are distinct
    points of the task. A number may be given as a range (smallest, largest). All tasks of a
    training step have the same n_points and n_clusters; n_features and n_components are drawn
    for each task.

    Parameters
    ----------
    n_features : int or tuple of int, default=32
        Dimensions that a task uses; the columns after them are 0.
    n_clusters : int or tuple of int, default=10
        Number of centers.
    n_points : int or tuple of int, default=512
        Number of points.
    n_components : int, tuple of int or None, default=None
        Number of components of the mixture; None for n_clusters.
    weights : {"equal", "random"}, default="equal"
        Weights of the components: all equal, or uniform on the simplex.
    scales : {"equal", "random"}, default="equal"
        Scales of the components: `scale`, or uniform between 0 and twice that for every dimension
        of every component.
    scale : float, default=0.1
        Scale of the components.

    Raises
    ------
    ValueError
        If a number or range is not positive, or if there are fewer points than clusters.

    See Also
    --------
    Settings : What else training needs.
    compare : Evaluate a trained layer on tasks.

    Examples
    --------
    >>> import torch
    >>> import lloydformer as lf
    >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=50)
    >>> batch = tasks.draw(("normal",), torch.tensor([0]), torch.tensor(0), size=4)
    >>> batch.points.shape, batch.centers.shape
    (torch.Size([1, 4, 50, 2]), torch.Size([1, 4, 3, 2]))
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
            count = getattr(self, name)
            ends = count if isinstance(count, tuple) else (count, count)
            integral = len(ends) == 2 and all(type(end) is int for end in ends)
            valid = count is None or (integral and 1 <= ends[0] <= ends[1])
            require(valid, name, count, "pass a positive integer, or a range (smallest, largest)")
        for name in ("weights", "scales"):
            value = getattr(self, name)
            require(value in ("equal", "random"), name, value, 'pass "equal" or "random"')
        positive = 0 < self.scale < math.inf
        require(positive, "scale", self.scale, "pass a positive finite number")
        if ends_of(self.n_points)[0] < ends_of(self.n_clusters)[1]:
            raise ValueError(
                f"n_points: found {self.n_points} for {self.n_clusters} clusters; a task needs at "
                "least as many points as clusters"
            )

    @property
    def of_one_shape(self) -> bool:
        """Tell whether all tasks have the same number of points and of clusters.

        See Also
        --------
        Tasks.draw : Draw tasks.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Tasks().of_one_shape, lf.learning.Tasks(n_points=(20, 40)).of_one_shape
        (True, False)
        """
        return isinstance(self.n_points, int) and isinstance(self.n_clusters, int)

    @property
    def n_numbers(self) -> int:
        """Return an upper bound of the numbers of a task: coordinates of points and components.

        See Also
        --------
        Tasks.draw : Draw tasks.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Tasks(n_features=2, n_clusters=3, n_points=(20, 50)).n_numbers
        106
        """
        most = self._most_components(ends_of(self.n_clusters)[1])
        return (ends_of(self.n_points)[1] + most) * ends_of(self.n_features)[1]

    def draw(
        self, families: tuple[str, ...], seeds: Int[Tensor, " r"], step: Int[Tensor, ""], size: int
    ) -> Batch:
        """Draw the tasks of a training step for several runs.

        The tasks are a pure function of the arguments: a run draws the same tasks alone and
        together with other runs.

        Parameters
        ----------
        families : tuple of str
            Family of each run: "normal", "cauchy", "gumbel", "laplace" or "lognormal".
        seeds : Tensor of shape (r,)
            Seed of each run, int64.
        step : Tensor of shape ()
            Number of the step, int64.
        size : int
            Number of tasks of each run.

        Returns
        -------
        Batch
            Points (r, size, n, d) and initial centers (r, size, k, d), in float32.

        See Also
        --------
        lloydformer.learning.train : Train on tasks.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> tasks = lf.learning.Tasks(n_features=3, n_clusters=2, n_points=10)
        >>> families, seeds = ("normal", "cauchy"), torch.tensor([0, 1])
        >>> points, centers = tasks.draw(families, seeds, torch.tensor(5), size=4)
        >>> points.shape, float(points.min()), float(points.max())
        (torch.Size([2, 4, 10, 3]), 0.0, 1.0)
        """
        n, k = ends_of(self.n_points)[1], ends_of(self.n_clusters)[1]
        if not self.of_one_shape:  # the same sizes in every run: the runs of a step are one batch
            key = stream_keys(torch.zeros_like(step)[None], "sizes", step)
            u_points, u_clusters = uniform(key, 2)[0]
            n = int(integers(u_points, *ends_of(self.n_points)))
            k = int(integers(u_clusters, *ends_of(self.n_clusters)))
        d, m = ends_of(self.n_features)[1], self._most_components(k)
        # The order of the parts decides which numbers each of them gets.
        shapes: dict[str, tuple[int, ...]] = {
            "members": (n,),
            "locations": (m, d),
            "noise": (n, d),
            "starts": (n,),
            "scales": (m, d) if self.scales == "random" else (0,),
            "weights": (m,) if self.weights == "random" else (0,),
            "features": (1,),
            "components": (1,),
        }
        u = uniform_parts(stream_keys(seeds, "tasks", step), size, shapes)
        components = k if self.n_components is None else self.n_components
        if self.weights == "equal" and isinstance(components, int):
            members = integers(u["members"], 0, components - 1)  # (r, b, n)
        else:
            # Exponentially distributed masses, divided by their sum, are uniform on the simplex.
            masses = -u["weights"].log() if self.weights == "random" else u["members"].new_ones(m)
            if not isinstance(components, int):
                used = integers(u["components"], *components)
                masses = masses * (torch.arange(m, device=masses.device) < used)
            members = draw_components(u["members"], masses.expand(*u["members"].shape[:2], m))
        scales = u["noise"].new_full((1, 1, 1, 1), self.scale)
        if self.scales == "random":
            scales = self.scale * take_rows(2 * u["scales"], members)
        locations = take_rows(u["locations"], members)
        points = scale_to_unit_cube(mixture_points(families, locations, scales, u["noise"]))
        if not isinstance(self.n_features, int):
            used = integers(u["features"], *self.n_features).unsqueeze(-1)
            points = points * (torch.arange(d, device=points.device) < used)
        return Batch(points, take_rows(points, u["starts"].topk(k, dim=-1).indices))

    def _most_components(self, n_clusters: int) -> int:
        return n_clusters if self.n_components is None else ends_of(self.n_components)[1]


def ends_of(count: Count) -> tuple[int, int]:
    """Return the smallest and the largest value of a number that may be a range."""
    return (count, count) if isinstance(count, int) else count
