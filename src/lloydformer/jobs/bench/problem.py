"""The problem that contenders solve, and the result that they return."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from lloydformer.jobs.bench.points import Points


@dataclass(frozen=True)
class BenchProblem:
    """Points, initial centers (None: one start with k-means++), and when to stop."""

    points: Points
    n_clusters: int
    start: Float[np.ndarray, "k d"] | None
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Fitted:
    """The final centers of a contender, and its number of iterations."""

    centers: Float[np.ndarray, "k d"]
    n_iter: int


@runtime_checkable
class Contender(Protocol):
    """An implementation of clustering: its name, and the package that it comes from."""

    @property
    def name(self) -> str: ...

    @property
    def package(self) -> str: ...

    def fit(self, problem: BenchProblem, seed: int) -> Fitted:
        """Run one whole fit."""
        ...


@dataclass(frozen=True)
class BenchCase:
    """A row of a question: its name, and a function that makes its problem."""

    name: str
    make: Callable[[], BenchProblem]


def objective(points: Points, centers: Float[np.ndarray, "k d"]) -> float:
    r"""$\sum_i \min_j \lVert x_i - c_j \rVert^2$ in float64, the same for every contender."""
    middle = points.mean(axis=0, dtype=np.float64)
    centers = centers.astype(np.float64) - middle
    total, part = 0.0, max(1, (1 << 22) // len(centers))
    for start in range(0, len(points), part):
        rows = points[start : start + part] - middle
        scores = (centers * centers).sum(axis=1) - 2 * (rows @ centers.T)
        total += float((rows * rows).sum() + scores.min(axis=1).sum())
    return total
