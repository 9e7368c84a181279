"""The question "gpu": points, cases and contenders on one GPU.

Points and starts are tensors on the device, kernels are compiled before the first sample, and
results stay on the device; a call ends when the device has finished.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.jobs.bench.points import BOX
from lloydformer.jobs.bench.problem import BenchCase, BenchProblem, Contender, Fitted, Work

SIZES = (
    (10_000_000, 2, 5), (1_000_000, 32, 10), (1_000_000, 64, 100), (1_000_000, 128, 1000),
    (4_000_000, 128, 256),
)  # fmt: skip
"""n, d, k of the fits."""
BATCH = (320, 512, 32, 10)
"""Problems, n, d, k of the batch."""
_DISTANCES = 1 << 27
"""Distances in float64 that are computed at once."""


def cases(folder: Path | None, seed: int) -> list[BenchCase]:
    kinds = (("mixture", mixture), ("normal", normal))
    fits = [
        BenchCase(f"{kind}, {_short(n)} x {d}, k {k}", partial(_problem, draw, (n, d, k), seed))
        for kind, draw in kinds
        for n, d, k in SIZES
    ]
    b, n, d, k = BATCH
    batches = [
        BenchCase(
            f"{kind}, {b} problems of {n} x {d}, k {k}",
            partial(_problem, draw, (b, n, d, k), seed, work="batch"), "batch",
        )
        for kind, draw in kinds
    ]  # fmt: skip
    seeded = partial(_seeded, (1_000_000, 32, 10), seed)
    return [*fits, *batches, BenchCase("k-means++, 1M x 32, k 10", seeded, "seeded")]


def mixture(shape: tuple[int, ...], k: int, seed: int) -> Tensor:
    """Points (*b, n, d) around k means that are uniform in a box, with noise of deviation 1."""
    points, generator = normal(shape, k, seed), _generator(seed + 1)
    *b, n, d = shape
    means = BOX * (2 * torch.rand(*b, k, d, device="cuda", generator=generator) - 1)
    own = torch.randint(k, (*b, n, 1), device="cuda", generator=generator)
    return points.add_(means.gather(-2, own.expand(*b, n, d)))


def normal(shape: tuple[int, ...], k: int, seed: int) -> Tensor:
    """Points of one Gaussian."""
    return torch.randn(shape, device="cuda", generator=_generator(seed))


def _generator(seed: int) -> torch.Generator:
    return torch.Generator("cuda").manual_seed(seed)


def _problem(
    draw: Callable[[tuple[int, ...], int, int], Tensor],
    size: tuple[int, ...],
    seed: int,
    work: str = "fit",
) -> BenchProblem:
    *shape, k = size
    points = draw(tuple(shape), k, seed)
    return BenchProblem(points, k, points[..., :k, :].clone(), 20, 0.0, work)


def _seeded(size: tuple[int, ...], seed: int) -> BenchProblem:
    return replace(_problem(mixture, size, seed, "seeded"), start=None, max_iter=300, tol=1e-4)


def _short(n: int) -> str:
    return f"{n // 1_000_000}M"


@dataclass(frozen=True)
class GpuContender:
    """This package, on an engine."""

    name: str
    engine: str
    package: str = "lloydformer"

    def does(self, work: str) -> bool:
        return work in ("fit", "seeded") or (work == "batch" and self.engine == "cuda")

    def prepared(self, problem: BenchProblem) -> Work:
        return partial(self._batch if problem.work == "batch" else self._fit, problem)

    def _fit(self, problem: BenchProblem, seed: int) -> Fitted:
        model = self._model(problem, seed).fit(problem.points)
        torch.cuda.synchronize()
        return Fitted(model.cluster_centers_, model.n_iter_)

    def _model(self, problem: BenchProblem, seed: int) -> Any:
        init = "k-means++" if problem.start is None else problem.start
        return lf.KMeans(problem.n_clusters, init=init, n_init=1, max_iter=problem.max_iter,
                         tol=problem.tol, random_state=0, engine=self.engine)  # fmt: skip

    def _batch(self, problem: BenchProblem, seed: int) -> Fitted:
        found = lf.fit_batch(
            problem.points, problem.n_clusters, init=problem.start, max_iter=problem.max_iter,
            tol=problem.tol,
        )  # fmt: skip
        torch.cuda.synchronize()
        return Fitted(found.centers, found.n_iter)

    def agreement(self, problem: BenchProblem) -> float:
        model = self._model(replace(problem, max_iter=1), 0).fit(problem.points)
        return agreement(problem.points, model.cluster_centers_, model.labels_)


@dataclass(frozen=True)
class FlashContender:
    """flash-kmeans, all iterations. It has no stop rule but a shift below `tol`, and no seeds."""

    name: str = "flash-kmeans"
    package: str = "flash-kmeans"

    def does(self, work: str) -> bool:
        return work in ("fit", "batch")

    def prepared(self, problem: BenchProblem) -> Work:
        return partial(self._fit, problem)

    def _fit(self, problem: BenchProblem, seed: int) -> Fitted:
        _, centers, n_iter = self._run(problem, problem.max_iter)
        torch.cuda.synchronize()
        return Fitted(centers if problem.work == "batch" else centers[0], n_iter)

    def _run(self, problem: BenchProblem, max_iter: int) -> Any:
        one = problem.work != "batch"
        points, start = (t[None] if one else t for t in (problem.points, problem.start))
        return import_module("flash_kmeans").batch_kmeans_Euclid(
            points, problem.n_clusters, max_iters=max_iter, tol=-1.0, init_centroids=start
        )

    def agreement(self, problem: BenchProblem) -> float:
        labels = self._run(problem, 1)[0]  # of the start
        return agreement(problem.points, problem.start, labels[0])


def contenders() -> list[Contender]:
    """This package, plain torch on the same GPU, and flash-kmeans if it is installed."""
    if not torch.cuda.is_available():
        raise ValueError("--question: found gpu on a machine without an NVIDIA GPU; ask another")
    ours = [GpuContender("lloydformer", "cuda"), GpuContender("lloydformer, chunked", "chunked")]
    return [*ours, *([] if find_spec("flash_kmeans") is None else [FlashContender()])]


def agreement(points: Tensor, centers: Tensor, labels: Tensor) -> float:
    """The share of labels that are nearest centers in float64, of ties the lowest."""
    parts = torch.split(points, max(1, _DISTANCES // len(centers)))
    found = torch.cat([_scores(part, centers.double()).argmin(dim=1) for part in parts])
    return float((found == labels).double().mean())


def device_objective(points: Tensor, centers: np.ndarray) -> float:
    """The sum of squared distances to the nearest centers, in float64; over all problems."""
    exact = torch.from_numpy(centers).to(points.device, torch.float64)
    if points.ndim == 3:
        return sum(device_objective(x, c.cpu().numpy()) for x, c in zip(points, exact, strict=True))
    total = 0.0
    for part in torch.split(points, max(1, _DISTANCES // len(exact))):
        squares = torch.linalg.vecdot(part.double(), part.double())
        total += float((squares + _scores(part, exact).amin(dim=1)).sum())
    return total


def _scores(points: Tensor, centers: Tensor) -> Tensor:
    squares = torch.linalg.vecdot(centers, centers)
    return torch.addmm(squares, points.double(), centers.T, alpha=-2)
