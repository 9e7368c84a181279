"""The questions of the benchmark: problems, contenders, and the unit of the times."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lloydformer.jobs.bench.contenders import CHUNKED, ELKAN, LLOYD, OUR_ALGORITHMS, OURS, optional
from lloydformer.jobs.bench.points import Points, mixture, noise, repeated, some_rows
from lloydformer.jobs.bench.problem import BenchCase, BenchProblem, Contender

Draw = Callable[[int, int, int, int], Points]

SIZES = ((1_000_000, 2, 5), (200_000, 32, 10), (200_000, 32, 100), (100_000, 128, 100),
         (100_000, 128, 1000), (1_000_000, 16, 64))  # fmt: skip
"""n, d, k of the question "iteration"."""

CONVERGING = {
    (1_000_000, 16, 64): "pendigits",
    (500_000, 8, 256): "shuttle",
    (200_000, 32, 500): "puma32h",
    (100_000, 64, 1000): "optdigits",
}
"""n, d, k of the question "convergence", and a real data set of about d columns for each."""


@dataclass(frozen=True)
class Question:
    """One question.

    asks: what is measured. per: the unit that a time is divided by, "fit", "iteration" or "point"
    (a point in an iteration). cases: the problems, from a folder of data sets and a seed.
    """

    asks: str
    per: str
    cases: Callable[[Path | None, int], list[BenchCase]]
    contenders: Callable[[], list[Contender]]
    notes: tuple[str, ...] = ()


def _iteration(folder: Path | None, seed: int) -> list[BenchCase]:
    return [
        _drawn(kind, draw, size, seed, max_iter=20, tol=0.0)
        for kind, draw in (("mixture", mixture), ("noise", noise))
        for size in SIZES
    ]


def _convergence(folder: Path | None, seed: int) -> list[BenchCase]:
    cases = [_drawn("mixture", mixture, size, seed) for size in CONVERGING]
    for (n, _, k), name in CONVERGING.items():
        path = None if folder is None else folder / f"{name}.npz"
        if path is not None and path.exists():
            make = partial(_problem, partial(repeated, path, n, seed), k, seed)
            cases.append(BenchCase(f"{name}, {_short(n)}, k {k}", make))
    return cases


def _small(folder: Path | None, seed: int) -> list[BenchCase]:
    points = partial(mixture, 500, 10, 8, seed)
    return [
        BenchCase("500 x 10, k 8, k-means++", lambda: BenchProblem(points(), 8, None, 300, 1e-4)),
        BenchCase("500 x 10, k 8, given start", partial(_problem, points, 8, seed)),
    ]


def _algorithms(folder: Path | None, seed: int) -> list[BenchCase]:
    return [_drawn("mixture", mixture, (200_000, 32, 10), seed, max_iter=20, tol=0.0)]


def _growth(folder: Path | None, seed: int) -> list[BenchCase]:
    sizes = [(10**power, 8, 16) for power in range(4, 8)]
    return [_drawn("mixture", mixture, size, seed, max_iter=10, tol=0.0) for size in sizes]


def _drawn(
    kind: str,
    draw: Draw,
    size: tuple[int, int, int],
    seed: int,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> BenchCase:
    n, d, k = size
    make = partial(_problem, partial(draw, n, d, k, seed), k, seed, max_iter, tol)
    return BenchCase(f"{kind}, {_short(n)} x {d}, k {k}", make)


def _problem(
    draw: Callable[[], Points], k: int, seed: int, max_iter: int = 300, tol: float = 1e-4
) -> BenchProblem:
    points = draw()
    return BenchProblem(points, k, some_rows(points, k, seed), max_iter, tol)


def _short(n: int) -> str:
    return f"{n // 1_000_000}M" if n % 1_000_000 == 0 else f"{n // 1000}k"


def _stopping() -> list[Contender]:
    return [OURS, LLOYD, ELKAN, *optional("scikit-learn-intelex")]


def _all() -> list[Contender]:
    return [OURS, CHUNKED, LLOYD, ELKAN, *optional("scikit-learn-intelex"), *optional("faiss-cpu")]


QUESTIONS = {
    "iteration": Question(
        "A fit of 20 iterations from the same rows, tol 0, divided by its iterations",
        "iteration", _iteration, _all,
    ),
    "convergence": Question(
        "A fit until it stops, tol 1e-4, from the same rows",
        "fit", _convergence, _stopping, ("faiss-cpu has no tol and is left out",),
    ),
    "small": Question("A fit of a small problem", "fit", _small, _stopping),
    "algorithms": Question(
        "An iteration of each algorithm, compared with one of KMeans",
        "iteration", _algorithms, lambda: list(OUR_ALGORITHMS),
        ("objectives are those of k-means, which only KMeans minimises",),
    ),
    "growth": Question(
        "A point in an iteration, for growing numbers of points",
        "point", _growth, lambda: [OURS, LLOYD],
    ),
}  # fmt: skip
