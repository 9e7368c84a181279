"""The problem that contenders solve, and the result that they return."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy import sparse
from torch import Tensor

from lloydformer.jobs.bench.points import Points


@dataclass(frozen=True)
class BenchProblem:
    """Points, initial centers (None: one start with k-means++), and when to stop.

    work: what is timed: "fit", "predict", "transform" or "score" of a fitted model, "partial_fit"
    of all points in batches, "minibatch" (a fit in batches), or "pass": the nearest center of each
    point, once and without bounds. batch: the number of rows of a batch.
    """

    points: Any  # Points, or a tensor on a GPU
    n_clusters: int
    start: Any  # (k, d), of the same kind
    max_iter: int
    tol: float
    work: str = "fit"
    batch: int = 0


@dataclass(frozen=True)
class Fitted:
    """The final centers of a contender, and its number of iterations.

    Both may be tensors on a GPU: fetching them is not timed. A tensor of numbers is of a batch.
    found: what the timed call returned, if that is not a model: labels (n,) or distances (n, k).
    """

    centers: Float[np.ndarray | Tensor, "*b k d"]
    n_iter: int | Tensor
    found: np.ndarray | None = None

    @property
    def iterations(self) -> int:
        """The number of iterations, the largest of a batch."""
        return int(self.n_iter.max()) if isinstance(self.n_iter, Tensor) else self.n_iter

    @property
    def on_host(self) -> Float[np.ndarray, "*b k d"]:
        """The centers as an array."""
        return self.centers.cpu().numpy() if isinstance(self.centers, Tensor) else self.centers


Work = Callable[[int], Fitted]
"""What is timed, as a function of the seed."""


@runtime_checkable
class Contender(Protocol):
    """An implementation of clustering: its name, and the package that it comes from."""

    @property
    def name(self) -> str: ...

    @property
    def package(self) -> str: ...

    def does(self, work: str) -> bool:
        """Has it this kind of work?"""
        ...

    def prepared(self, problem: BenchProblem) -> Work:
        """Everything that comes before the timed work; returns the work itself."""
        ...


@dataclass(frozen=True)
class BenchCase:
    """A row of a question: its name, a function that makes its problem, and its kind of work."""

    name: str
    make: Callable[[], BenchProblem]
    work: str = "fit"


def objective(points: Points, fitted: Fitted) -> float:
    r"""$\sum_i \min_j \lVert x_i - c_j \rVert^2$ in float64, the same for every contender.

    With labels the centers are those that they name; with distances, they are the sum of squares
    of the smallest ones.
    """
    found, centers = fitted.found, fitted.on_host.astype(np.float64)
    if found is not None and found.ndim == 2:
        return float(np.square(found.min(axis=1), dtype=np.float64).sum())
    dense = isinstance(points, np.ndarray)  # a sparse matrix is not centered
    middle = points.mean(axis=0, dtype=np.float64) if dense else np.zeros(points.shape[1])
    total, part = 0.0, max(1, (1 << 22) // len(centers))
    for start in range(0, points.shape[0], part):
        rows = points[start : start + part]
        labels = None if found is None else found[start : start + part]
        rows = rows - middle if dense else rows.astype(np.float64)
        total += _squares(rows, centers - middle, labels)
    return total


def _squares(rows: Any, centers: np.ndarray, labels: np.ndarray | None) -> float:
    """The sum of squared distances, to the nearest centers or to those of labels."""
    scores = (centers * centers).sum(axis=1) - 2 * (rows @ centers.T)
    if labels is None:
        own = scores.min(axis=1)
    else:
        own = np.take_along_axis(scores, labels[:, None].astype(np.int64), axis=1)
    squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
    return float(squares.sum() + own.sum())
