"""What contenders are given, and what they give back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from lloydformer.jobs.bench.points import Points


@dataclass(frozen=True)
class Problem:
    """Points, where to start (None: k-means++, one start) and when to stop."""

    points: Points
    n_clusters: int
    start: Float[np.ndarray, "k d"] | None
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Fitted:
    """The centers that a contender ended at, and how many iterations it took."""

    centers: Float[np.ndarray, "k d"]
    n_iter: int


@runtime_checkable
class Contender(Protocol):
    """One that fits: its name, and the package that it comes from."""

    @property
    def name(self) -> str: ...

    @property
    def package(self) -> str: ...

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """One whole fit."""
        ...


@dataclass(frozen=True)
class Case:
    """A row of a question: a name, and how its problem is made."""

    name: str
    make: Callable[[], Problem]


def objective(points: Points, centers: Float[np.ndarray, "k d"]) -> float:
    r"""$\sum_i \min_j \lVert x_i - c_j \rVert^2$ in float64, whoever found the centers."""
    middle = points.mean(axis=0, dtype=np.float64)
    centers = centers.astype(np.float64) - middle
    total, part = 0.0, max(1, (1 << 22) // len(centers))
    for start in range(0, len(points), part):
        rows = points[start : start + part] - middle
        scores = (centers * centers).sum(axis=1) - 2 * (rows @ centers.T)
        total += float((rows * rows).sum() + scores.min(axis=1).sum())
    return total
