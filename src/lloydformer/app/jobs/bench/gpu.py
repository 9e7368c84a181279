"""The question "gpu": points, cases and contenders on one GPU.

Points and starts are tensors on the device, kernels are compiled before the first sample, and
results stay on the device; a call ends when the device has finished.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.app.jobs.bench.cases import BOX
from lloydformer.app.jobs.bench.contenders import prepare_fit
from lloydformer.app.jobs.bench.measure import (
    BenchCase,
    BenchProblem,
    Contender,
    Fitted,
    Prepare,
    TimedCall,
    score_chunks,
)

# n, d, k of the fits: from memory-bound to bound by products.
SIZES = (
    (10_000_000, 2, 5),
    (1_000_000, 32, 10),
    (1_000_000, 64, 100),
    (1_000_000, 128, 1000),
    (4_000_000, 128, 256),
)
# Problems, n, d, k of the batch.
BATCH = (320, 512, 32, 10)


def cases(seed: int) -> list[BenchCase]:
    """Return fits from given starts, batches of small problems, and a fit with k-means++."""
    fits, batches = [], []
    kinds: dict[str, Draw] = {"mixture": draw_mixture, "normal": draw_normal}
    for kind, draw in kinds.items():
        for n, d, k in SIZES:
            name = f"{kind}, {n // 1_000_000}M x {d}, k {k}"
            fits.append(BenchCase(name, partial(_make_problem, draw, (n, d), k, seed)))
        b, n, d, k = BATCH
        name = f"{kind}, {b} problems of {n} x {d}, k {k}"
        make = partial(_make_problem, draw, (b, n, d), k, seed, "batch")
        batches.append(BenchCase(name, make, "batch"))

    def make_without_start() -> BenchProblem:
        problem = _make_problem(draw_mixture, (1_000_000, 32), 10, seed, "seeded")
        return replace(problem, start=None, max_iter=300, tol=1e-4)

    return [*fits, *batches, BenchCase("k-means++, 1M x 32, k 10", make_without_start, "seeded")]


def draw_mixture(shape: tuple[int, ...], k: int, seed: int) -> Tensor:
    """Return points (*b, n, d) around k means in a box, with noise of deviation 1."""
    points, generator = draw_normal(shape, k, seed), torch.Generator("cuda").manual_seed(seed + 1)
    *b, n, d = shape
    means = BOX * (2 * torch.rand(*b, k, d, device="cuda", generator=generator) - 1)
    own = torch.randint(k, (*b, n, 1), device="cuda", generator=generator)
    return points.add_(means.gather(-2, own.expand(*b, n, d)))


def draw_normal(shape: tuple[int, ...], k: int, seed: int) -> Tensor:
    """Return points of one Gaussian."""
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", generator=generator)


Draw = Callable[[tuple[int, ...], int, int], Tensor]


def _make_problem(
    draw: Draw, shape: tuple[int, ...], k: int, seed: int, work: str = "fit"
) -> BenchProblem:
    """Return 20 iterations from the first k points."""
    points = draw(shape, k, seed)
    return BenchProblem(points, k, points[..., :k, :].clone(), 20, 0.0, work)


def make_kmeans(engine: str, **settings: Any) -> lf.KMeans:
    """Return this package's estimator on an engine, with the same seed in all samples.

    Only k-means++ uses the seed; so every sample does the same work.
    """
    return lf.KMeans(**{**settings, "engine": engine, "random_state": 0})


def prepare_batch(problem: BenchProblem) -> TimedCall:
    """Return a fit of all problems of a batch by this package."""
    how = {"init": problem.start, "max_iter": problem.max_iter, "tol": problem.tol}

    def fit(seed: int) -> Fitted:
        result = lf.fit_batch(problem.points, problem.n_clusters, **how)
        torch.cuda.synchronize()
        return Fitted(result.centers, result.n_iter)

    return fit


def own_agreement(engine: str, problem: BenchProblem) -> float:
    """Return the share of labels after one iteration that are correct."""
    start = {"init": problem.start, "n_init": 1}
    model = make_kmeans(engine, n_clusters=problem.n_clusters, max_iter=1, tol=problem.tol, **start)
    model.fit(problem.points)
    return label_agreement(problem.points, model.cluster_centers_, model.labels_)


def _run_flash(problem: BenchProblem, max_iter: int) -> Any:
    """Run flash-kmeans. Its only stop rule is a shift below `tol`: -1 runs all iterations."""
    points, start = problem.points, problem.start
    if problem.work != "batch":  # it knows batches only
        points, start = points[None], start[None]
    return import_module("flash_kmeans").batch_kmeans_Euclid(
        points, problem.n_clusters, max_iters=max_iter, tol=-1.0, init_centroids=start
    )


def prepare_flash(problem: BenchProblem) -> TimedCall:
    """Return a fit of one problem or of a batch by flash-kmeans, which takes no seed."""

    def fit(seed: int) -> Fitted:
        _, centers, n_iter = _run_flash(problem, problem.max_iter)
        torch.cuda.synchronize()
        return Fitted(centers if problem.work == "batch" else centers[0], n_iter)

    return fit


def flash_agreement(problem: BenchProblem) -> float:
    """Return the share of labels of the start that are correct."""
    return label_agreement(problem.points, problem.start, _run_flash(problem, 1)[0][0])


def contenders() -> list[Contender]:
    """Return this package, plain torch on the same GPU, and flash-kmeans if it is installed."""
    if not torch.cuda.is_available():
        raise ValueError("--question: found gpu on a machine without an NVIDIA GPU; choose another")
    found = []
    for name, engine in (("lloydformer", "cuda"), ("lloydformer, chunked", "chunked")):
        make = partial(make_kmeans, engine)
        # Kernels run on after the call that launched them.
        fit = partial(prepare_fit, make, finish=lambda model: torch.cuda.synchronize())
        prepare: dict[str, Prepare] = {"fit": fit, "seeded": fit}
        if engine == "cuda":  # fit_batch chooses its kernels by the device alone
            prepare["batch"] = prepare_batch
        found.append(Contender(name, "lloydformer", prepare, partial(own_agreement, engine)))
    if find_spec("flash_kmeans") is not None:
        prepare = {"fit": prepare_flash, "batch": prepare_flash}
        found.append(Contender("flash-kmeans", "flash-kmeans", prepare, flash_agreement))
    return found


def label_agreement(points: Tensor, centers: Tensor, labels: Tensor) -> float:
    """Return the share of labels that are nearest centers in float64, of ties the lowest."""
    nearest = torch.cat([scores.argmin(dim=1) for _, scores in score_chunks(points, centers)])
    return float((nearest == labels).double().mean())
