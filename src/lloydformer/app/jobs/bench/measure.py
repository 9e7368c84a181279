"""Time contenders on the same problem, in turns."""

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

# Minimum duration of a sample: shorter calls are repeated in it (chosen by hand). The smallest fit
# takes 0.8 ms (bench_small.json), so about a hundred of them are averaged.
_MIN_SECONDS = 0.1

# Calls of a sample whose objectives are averaged (chosen by hand).
_MAX_OBJECTIVES = 10

# Distances in float64 that are computed at once, which bounds temporary memory: 32 MB on a CPU, and
# 1 GB on a GPU, where few large products are faster than many small ones.
_CPU_DISTANCES, _GPU_DISTANCES = 1 << 22, 1 << 27


@dataclass(frozen=True)
class BenchProblem:
    """The problem that all contenders of a case solve.

    Attributes
    ----------
    points : ndarray, csr_matrix, or a tensor on a GPU
        The rows.
    n_clusters : int
        The number of clusters.
    start : ndarray or tensor of shape (k, d), or None
        The initial centers; None is one start with k-means++.
    max_iter, tol : int, float
        The stop rule of scikit-learn.
    work : str
        The call that is timed: "fit" (on a GPU also "seeded", from k-means++, and "batch"),
        "predict", "transform" or "score" of a fitted model, "partial_fit" of all points in batches,
        "minibatch" (a fit in batches), or "pass": the nearest center of each point, once and
        without bounds.
    batch : int
        The number of rows of a batch.
    """

    points: Any
    n_clusters: int
    start: Any
    max_iter: int = 300
    tol: float = 1e-4
    work: str = "fit"
    batch: int = 0


@dataclass(frozen=True)
class Fitted:
    """The result of a timed call. Tensors may be on a GPU: fetching them is not timed.

    Attributes
    ----------
    centers : ndarray or tensor of shape (k, d), or (b, k, d) for a batch
        The final centers.
    n_iter : int, or tensor of shape (b,)
        The number of iterations.
    output : ndarray or None
        What a call of a fitted model returned: labels (n,) or distances (n, k).
    """

    centers: Float[np.ndarray | Tensor, "*b k d"]
    n_iter: int | Tensor
    output: np.ndarray | None = None

    @property
    def iterations(self) -> int:
        """The number of iterations, the largest of a batch."""
        return int(self.n_iter.max()) if isinstance(self.n_iter, Tensor) else self.n_iter


# The call that is timed, as a function of the seed; and everything that comes before it.
TimedCall = Callable[[int], Fitted]
Prepare = Callable[[BenchProblem], TimedCall]


@dataclass(frozen=True)
class Contender:
    """An implementation of clustering.

    Attributes
    ----------
    name, package : str
        Its name, and the package that it comes from.
    prepare : mapping of str to callable
        For each kind of work that it does, a function that returns the timed call.
    agreement : callable or None
        Returns the share of labels of a problem that are correct.
    """

    name: str
    package: str
    prepare: Mapping[str, Prepare]
    agreement: Callable[[BenchProblem], float] | None = None


@dataclass(frozen=True)
class BenchCase:
    """A row of a question: its name, a function that makes its problem, and its kind of work."""

    name: str
    make: Callable[[], BenchProblem]
    work: str = "fit"

    def select(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the contenders that do the work of this case."""
        return [contender for contender in contenders if self.work in contender.prepare]


@dataclass
class Samples:
    """The samples of one contender.

    Attributes
    ----------
    name : str
        The contender.
    call : callable
        The timed call.
    calls : int
        The number of calls in a sample.
    seconds : list of float
        A number for each sample, in the unit of the question.
    n_iter, objective : float
        Means over the calls of the first sample.
    """

    name: str
    call: TimedCall
    calls: int
    seconds: list[float] = field(default_factory=list)
    n_iter: float = 0.0
    objective: float = 0.0

    def take(self, problem: BenchProblem, per: str) -> None:
        """Take one sample; the seeds of its calls follow those of the sample before."""
        n_samples = len(self.seconds)
        seeds = range(n_samples * self.calls, (n_samples + 1) * self.calls)
        gc.collect()
        gc.disable()  # as timeit does: a collection would hit one contender by chance
        try:
            timed = [_time(self.call, seed) for seed in seeds]
        finally:
            gc.enable()
        iterations = sum(fitted.iterations for _, fitted in timed)
        points = iterations * problem.points.shape[0]
        # Contenders may stop after different numbers of iterations, so each divides by its own.
        units = {"fit": len(timed), "call": len(timed), "iteration": iterations, "point": points}
        self.seconds.append(sum(seconds for seconds, _ in timed) / units[per])
        if n_samples == 0:
            self.n_iter = iterations / len(timed)
            some = [fitted for _, fitted in timed[:_MAX_OBJECTIVES]]
            self.objective = statistics.mean(objective(problem.points, f) for f in some)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of a result."""
        # Inclusive: quartiles of a few samples stay between the fastest and the slowest.
        low, middle, high = statistics.quantiles(self.seconds, method="inclusive")
        return {
            "median": middle,
            "quartiles": [low, high],
            "fastest": min(self.seconds),
            "slowest": max(self.seconds),
            "n_iter": self.n_iter,
            "objective": self.objective,
            "fits": self.calls * len(self.seconds),
        }


def measure(
    case: BenchCase,
    contenders: Sequence[Contender],
    per: str,
    repeats: int,
    after: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Measure one case; returns the row of the result.

    `per` is the unit of the question; `after` is called after each sample, with its case and
    contender. The row has for each contender `times`, the median over that of the first contender,
    and `ahead`, the least `times` of another package.
    """
    problem, selected = case.make(), case.select(contenders)
    every_samples = []
    for contender in selected:
        prepare = contender.prepare[case.work]
        call, short = prepare(problem), prepare(replace(problem, max_iter=2))
        _time(short, 0)  # imports, compiles kernels, starts threads
        seconds, _ = _time(short, 0)
        # A whole fit is longer than the two iterations measured here: 20 ms of them are enough.
        calls = 1 if seconds > _MIN_SECONDS / 5 else ceil(_MIN_SECONDS / seconds)
        every_samples.append(Samples(contender.name, call, calls))
    for repeat in range(repeats):
        # In turns, so that a slow minute of the machine hits all; and no contender always goes
        # first, into the caches that the last one has left.
        turn = repeat % len(every_samples)
        for samples in every_samples[turn:] + every_samples[:turn]:
            samples.take(problem, per)
            after(f"{case.name}: {samples.name}")
    row = {samples.name: samples.summary() for samples in every_samples}
    first = selected[0]
    for summary in row.values():
        summary["times"] = summary["median"] / row[first.name]["median"]
    # Another engine of the first contender's package is no peer.
    peers = [row[c.name]["times"] for c in selected if c.package != first.package]
    for contender in selected:
        if case.work == "fit" and contender.agreement is not None:
            row[contender.name]["agreement"] = contender.agreement(problem)
    return {"contenders": row, "ahead": min(peers, default=None)}


def _time(call: TimedCall, seed: int) -> tuple[float, Fitted]:
    with warnings.catch_warnings():  # max_iter reached, or fewer clusters: expected
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        fitted = call(seed)
        return time.perf_counter() - began, fitted


def objective(points: Any, fitted: Fitted) -> float:
    r"""Return $\sum_i \min_j \lVert x_i - c_j \rVert^2$ in float64, for every contender alike.

    With labels the centers are those that they name; with distances it is the sum of squares of the
    smallest ones. The objective of a batch is that of all its problems. Points are those of a
    `BenchProblem`.
    """
    output, centers = fitted.output, torch.as_tensor(fitted.centers)
    if output is not None and output.ndim == 2:
        return float(np.square(output.min(axis=1), dtype=np.float64).sum())
    if centers.ndim == 3:
        pairs = zip(points, centers, strict=True)
        return sum(objective(rows, Fitted(own, 1)) for rows, own in pairs)
    total, start = 0.0, 0
    for rows, scores in score_chunks(points, centers):
        if output is None:
            labels = scores.argmin(dim=1)
        else:
            labels = torch.as_tensor(output[start : start + len(scores)], dtype=torch.int64)
        # By differences: scores of a far row have errors as large as the objective of the others.
        away = rows - centers.to(rows)[labels]
        total += float(torch.linalg.vecdot(away, away).sum())
        start += len(scores)
    return total


def score_chunks(
    points: Any, centers: Float[np.ndarray | Tensor, "k d"]
) -> Iterator[tuple[Float[Tensor, "m d"], Float[Tensor, "m k"]]]:
    r"""Yield rows, and their $\lVert c \rVert^2 - 2 \langle x, c \rangle$, both in float64.

    The lowest score is that of the nearest center. For the scores dense points are centered first,
    because the differences of large squares lose digits; rows of a sparse matrix are near the
    origin as they are.
    """
    exact = torch.as_tensor(centers).double()
    mean = exact.new_zeros(())
    if not sparse.issparse(points):
        points = torch.as_tensor(points)
        mean = points.mean(dim=0, dtype=torch.float64)
        exact = exact.to(points.device) - mean
    center_squares = torch.linalg.vecdot(exact, exact)
    distances = _GPU_DISTANCES if exact.is_cuda else _CPU_DISTANCES
    size = max(1, distances // max(exact.shape))
    for start in range(0, points.shape[0], size):
        rows = points[start : start + size]
        if not isinstance(rows, Tensor):
            rows = torch.from_numpy(rows.toarray())
        rows = rows.double()
        yield rows, torch.addmm(center_squares, rows - mean, exact.T, alpha=-2)
