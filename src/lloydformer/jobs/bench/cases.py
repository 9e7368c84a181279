"""The cases of each question: names, sizes, and functions that make the problems.

Each function takes a folder of data sets, or None, and a seed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from lloydformer.jobs.bench.points import (
    Points,
    close_mixture,
    mixture,
    noise,
    repeated,
    some_rows,
    words,
)
from lloydformer.jobs.bench.problem import BenchCase, BenchProblem

Draw = Callable[[int, int, int, int], Points]

SIZES = ((1_000_000, 2, 5), (200_000, 32, 10), (200_000, 32, 100), (100_000, 128, 100),
         (100_000, 128, 1000), (1_000_000, 16, 64))  # fmt: skip
"""n, d, k of the question "iteration"."""

MANY = ((100_000, 128, 1000), (100_000, 64, 1000), (50_000, 256, 500), (20_000, 784, 1000))
"""n, d, k of the question "large_k"."""

SPARSE = ((20_000, 10_000, 50, 20), (200_000, 2_000, 20, 20), (200_000, 2_000, 20, 100))
"""n, d, numbers in a row and k of the question "sparse"."""

CONVERGING = {
    (1_000_000, 16, 64): "pendigits",
    (500_000, 8, 256): "shuttle",
    (200_000, 32, 500): "puma32h",
    (100_000, 64, 1000): "optdigits",
}
"""n, d, k of the question "convergence", and a real data set of about d columns for each."""


def iteration(folder: Path | None, seed: int) -> list[BenchCase]:
    return [
        _drawn(kind, draw, size, seed, max_iter=20, tol=0.0)
        for kind, draw in (("mixture", mixture), ("close mixture", close_mixture), ("noise", noise))
        for size in SIZES
    ]


def large_k(folder: Path | None, seed: int) -> list[BenchCase]:
    fits = [
        _drawn(kind, draw, size, seed, max_iter=20, tol=0.0)
        for kind, draw in (("mixture", mixture), ("close mixture", close_mixture))
        for size in MANY
    ]
    passes = [_drawn("one pass", close_mixture, size, seed, work="pass") for size in MANY]
    return [*fits, *passes]


def predict(folder: Path | None, seed: int) -> list[BenchCase]:
    large = [
        _drawn(work, mixture, (1_000_000, 16, 20), seed, work=work)
        for work in ("predict", "transform", "score")
    ]
    one = partial(_first_row, partial(mixture, 500, 10, 8, seed), 8, seed)
    return [*large, BenchCase("predict, one row of 10, k 8", one, "predict")]


def sparse(folder: Path | None, seed: int) -> list[BenchCase]:
    return [
        BenchCase(
            f"{_short(n)} x {_short(d)}, {100 * per_row / d:g} %, k {k}",
            partial(_problem, partial(words, n, d, per_row, k, seed), k, seed, 20, 0.0),
        )
        for n, d, per_row, k in SPARSE
    ]


def minibatch(folder: Path | None, seed: int) -> list[BenchCase]:
    batches = partial(mixture, 49 * 4096, 16, 20, seed)
    points = partial(mixture, 1_000_000, 16, 20, seed)
    return [
        BenchCase(
            "49 times partial_fit, batches of 4096 x 16, k 20",
            partial(_problem, batches, 20, seed, work="partial_fit", batch=4096), "partial_fit",
        ),
        BenchCase(
            "one pass, 1M x 16, k 20, batches of 4096",
            partial(_problem, points, 20, seed, 1, 0.0, work="minibatch", batch=4096),
            "minibatch",
        ),
    ]  # fmt: skip


def convergence(folder: Path | None, seed: int) -> list[BenchCase]:
    cases = [_drawn("mixture", mixture, size, seed) for size in CONVERGING]
    for (n, _, k), name in CONVERGING.items():
        path = None if folder is None else folder / f"{name}.npz"
        if path is not None and path.exists():
            make = partial(_problem, partial(repeated, path, n, seed), k, seed)
            cases.append(BenchCase(f"{name}, {_short(n)}, k {k}", make))
    return cases


def small(folder: Path | None, seed: int) -> list[BenchCase]:
    points = partial(mixture, 500, 10, 8, seed)
    return [
        BenchCase("500 x 10, k 8, k-means++", lambda: BenchProblem(points(), 8, None, 300, 1e-4)),
        BenchCase("500 x 10, k 8, given start", partial(_problem, points, 8, seed)),
    ]


def algorithms(folder: Path | None, seed: int) -> list[BenchCase]:
    return [_drawn("mixture", mixture, (200_000, 32, 10), seed, max_iter=20, tol=0.0)]


def growth(folder: Path | None, seed: int) -> list[BenchCase]:
    sizes = [(10**power, 8, 16) for power in range(4, 8)]
    return [_drawn("mixture", mixture, size, seed, max_iter=10, tol=0.0) for size in sizes]


def _drawn(
    kind: str,
    draw: Draw,
    size: tuple[int, int, int],
    seed: int,
    max_iter: int = 300,
    tol: float = 1e-4,
    work: str = "fit",
) -> BenchCase:
    n, d, k = size
    make = partial(_problem, partial(draw, n, d, k, seed), k, seed, max_iter, tol, work=work)
    return BenchCase(f"{kind}, {_short(n)} x {d}, k {k}", make, work)


def _problem(
    draw: Callable[[], Points], k: int, seed: int, max_iter: int = 300, tol: float = 1e-4,
    work: str = "fit", batch: int = 0,
) -> BenchProblem:  # fmt: skip
    points = draw()
    return BenchProblem(points, k, some_rows(points, k, seed), max_iter, tol, work, batch)


def _first_row(draw: Callable[[], Points], k: int, seed: int) -> BenchProblem:
    whole = _problem(draw, k, seed, work="predict")
    return replace(whole, points=whole.points[:1])


def _short(n: int) -> str:
    return f"{n // 1_000_000}M" if n % 1_000_000 == 0 else f"{n // 1000}k"
