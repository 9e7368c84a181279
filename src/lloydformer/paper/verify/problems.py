"""Random clustering problems: clustered, uniform, integers with ties, far from the origin.

`HARD` families have what goes wrong most often: centers that are no points, equal points, points
between two centers, equal centers, an outlier, a center without points, points that are almost
equal, other units. `axes` are unit vectors with many equal dot products.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

Family = Literal[
    "clustered",
    "uniform",
    "integer",
    "shifted",
    "between",
    "duplicates",
    "ties",
    "coincident",
    "outlier",
    "empty",
    "near",
    "scaled",
    "axes",
]
FAMILIES: tuple[Family, ...] = ("clustered", "uniform", "integer", "shifted")
CONTINUOUS: tuple[Family, ...] = ("clustered", "uniform")
# `draw` makes the points hard, the functions `with_...` the centers.
HARD: tuple[Family, ...] = (
    *("between", "duplicates", "ties", "coincident"),
    *("outlier", "empty", "near", "scaled"),
)


@dataclass(frozen=True)
class Problem:
    """Points and initial centers, which are some of the points."""

    points: Float[ndarray, "n d"]
    centers: Float[ndarray, "k d"]
    family: str

    @property
    def spread(self) -> float:
        """The distance from the mean to the farthest point; 1 if all points coincide."""
        away = self.points - self.points.mean(axis=0)
        return float(np.sqrt((away**2).sum(axis=1).max())) or 1.0

    def tensors(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """Return points and centers as tensors, which share no memory with the arrays."""
        return torch.tensor(self.points, dtype=dtype), torch.tensor(self.centers, dtype=dtype)


def draw(
    rng: np.random.Generator,
    family: Family,
    n: tuple[int, int] = (5, 400),
    d: tuple[int, int] = (1, 40),
    k: tuple[int, int] = (2, 12),
) -> Problem:
    """Draw a problem of a random size within these bounds, both ends included."""
    n_points, n_features = (int(rng.integers(*bounds, endpoint=True)) for bounds in (n, d))
    n_clusters = int(rng.integers(k[0], min(k[1], n_points), endpoint=True))
    points = draw_points(rng, family, n_points, n_features)
    problem = with_centers(rng, points, n_clusters, family)
    spread, points = problem.spread, problem.points.copy()
    match family:
        case "duplicates":  # a third of the points, each several times; centers may be equal
            points = points[rng.integers(-(-n_points // 3), size=n_points)]
        case "outlier":  # a point a thousand spreads away
            away = rng.normal(size=n_features)
            points[rng.integers(n_points)] += 1000 * spread * away / np.linalg.norm(away)
        case "near":  # half of the points a billionth of the spread beside others
            half = n_points // 2
            beside = 1e-9 * spread * rng.normal(size=points[:half].shape)
            points[half : 2 * half] = points[:half] + beside
        case "scaled":  # other units, from a thousandth to a thousand
            unit = 10 ** rng.uniform(-3, 3)
            return replace(problem, points=unit * points, centers=unit * problem.centers)
        case _:
            return problem
    return with_centers(rng, points, n_clusters, family)


def draw_points(rng: np.random.Generator, family: Family, n: int, d: int) -> ndarray:
    if family in ("integer", "ties"):
        return rng.integers(-3, 3, size=(n, d), endpoint=True).astype(float)
    if family == "axes":
        return np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1.0, 1.0], size=(n, 1))
    if family == "uniform":
        return rng.uniform(-1, 1, size=(n, d))
    middles = rng.uniform(-5, 5, size=(rng.integers(2, 8), d))
    points = middles[rng.integers(len(middles), size=n)] + rng.normal(size=(n, d))
    # at 1e6, squares of coordinates lose 12 of 16 digits
    return points + (1e6 if family == "shifted" else 0.0)


def small_problems(rng: np.random.Generator, count: int = 60) -> list[Problem]:
    """Draw uniform problems that are small enough to run many circuits on each."""
    return [draw(rng, "uniform", n=(20, 120), d=(2, 8), k=(2, 6)) for _ in range(count)]


def with_centers(
    rng: np.random.Generator, points: ndarray, n_clusters: int, family: str
) -> Problem:
    """Return a problem whose initial centers are drawn from the points without replacement."""
    chosen = rng.choice(len(points), size=min(n_clusters, len(points)), replace=False)
    return Problem(points, points[chosen], family)


def with_centers_between(rng: np.random.Generator, problem: Problem) -> Problem:
    """Return the problem with centers at a third of the way between two points."""
    ends = problem.points[rng.integers(len(problem.points), size=(2, len(problem.centers)))]
    return replace(problem, centers=ends[0] + (ends[1] - ends[0]) / 3)


def with_ties(problem: Problem) -> Problem:
    """Return the problem of whole numbers, doubled, with points between the two nearest centers.

    Every third point is in the middle of the two centers that are nearest to each other.
    """
    points, centers = 2 * problem.points, 2 * problem.centers
    apart = ((centers[:, None] - centers) ** 2).sum(axis=2) + np.diag(np.full(len(centers), np.inf))
    first, second = np.unravel_index(apart.argmin(), apart.shape)
    points[::3] = (centers[first] + centers[second]) / 2
    return replace(problem, points=points, centers=centers)


def with_equal_centers(problem: Problem) -> Problem:
    """Return the problem with its last center equal to the first."""
    return replace(problem, centers=np.concatenate([problem.centers[:-1], problem.centers[:1]]))


def with_empty_cluster(rng: np.random.Generator, problem: Problem) -> Problem:
    """Return the problem with a center ten spreads away from all points."""
    centers, away = problem.centers.copy(), rng.normal(size=problem.points.shape[1])
    chosen = rng.integers(len(centers))
    centers[chosen] += 10 * problem.spread * away / np.linalg.norm(away)
    return replace(problem, centers=centers)


def without_near_points(rng: np.random.Generator, problem: Problem, separation: float) -> Problem:
    """Remove points that are nearer than `separation` spreads to another but not equal to it.

    Dot products cannot distinguish them (docs/errata.md, 8).
    """
    least = (separation * problem.spread) ** 2
    kept: list[ndarray] = []
    for point in problem.points:
        near = ((np.array(kept) - point) ** 2).sum(axis=1) if kept else np.array([np.inf])
        if not np.any((near < least) & (near > 0)):
            kept.append(point)
    return with_centers(rng, np.stack(kept), len(problem.centers), problem.family)


def on_sphere(rng: np.random.Generator, problem: Problem) -> Problem:
    """Return the problem of unit vectors; equal directions become bitwise equal."""
    points = problem.points[np.abs(problem.points).max(axis=1) > 0]
    if problem.family == "integer":  # (2, 4) and (1, 2) would round to different unit vectors
        points = points / np.gcd.reduce(points.astype(int), axis=1)[:, None]
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    return with_centers(rng, points, len(problem.centers), problem.family)


def round_to_dtype(problem: Problem, dtype: torch.dtype) -> Problem:
    """Return the problem rounded to numbers that `dtype` represents exactly."""
    points, centers = (rows.double().numpy() for rows in problem.tensors(dtype))
    return replace(problem, points=points, centers=centers)
