"""The questions of the benchmark: problems, contenders, and the unit of the times."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lloydformer.jobs.bench import cases, gpu
from lloydformer.jobs.bench.contenders import CHUNKED, ELKAN, LLOYD, OUR_ALGORITHMS, OURS, optional
from lloydformer.jobs.bench.passes import PASS, PRODUCTS
from lloydformer.jobs.bench.problem import BenchCase, Contender


@dataclass(frozen=True)
class Question:
    """One question.

    asks: what is measured. per: the unit that a time is divided by, "fit", "call", "iteration" or
    "point" (a point in an iteration). cases: the problems, from a folder of data sets and a seed.
    """

    asks: str
    per: str
    cases: Callable[[Path | None, int], list[BenchCase]]
    contenders: Callable[[], list[Contender]]
    notes: tuple[str, ...] = ()


def _stopping() -> list[Contender]:
    return [OURS, LLOYD, ELKAN, *optional("scikit-learn-intelex")]


def _all() -> list[Contender]:
    return [OURS, CHUNKED, LLOYD, ELKAN, *optional("scikit-learn-intelex"), *optional("faiss-cpu")]


def _many() -> list[Contender]:
    peers = [LLOYD, *optional("scikit-learn-intelex"), *optional("faiss-cpu")]
    return [OURS, PASS, *peers, *PRODUCTS]


QUESTIONS = {
    "iteration": Question(
        "A fit of 20 iterations from the same rows, tol 0, divided by its iterations",
        "iteration", cases.iteration, _all,
    ),
    "convergence": Question(
        "A fit until it stops, tol 1e-4, from the same rows",
        "fit", cases.convergence, _stopping, ("faiss-cpu has no tol and is left out",),
    ),
    "small": Question("A fit of a small problem", "fit", cases.small, _stopping),
    "large_k": Question(
        "A fit of 20 iterations with many centers, divided by its iterations; and one pass "
        "without bounds beside the matrix product of points and centers",
        "iteration", cases.large_k, _many,
        ("the products compute no minimum, no label and no sum",),
    ),
    "predict": Question(
        "A call of a fitted model", "call", cases.predict,
        lambda: [OURS, LLOYD, *optional("scikit-learn-intelex"), *optional("faiss-cpu")],
    ),
    "sparse": Question(
        "A fit of 20 iterations on a CSR matrix, divided by its iterations",
        "iteration", cases.sparse, _stopping,
    ),
    "minibatch": Question(
        "Batches of rows: partial_fit, and a fit", "call", cases.minibatch, lambda: [OURS, LLOYD],
    ),
    "algorithms": Question(
        "An iteration of each algorithm, compared with one of KMeans",
        "iteration", cases.algorithms, lambda: list(OUR_ALGORITHMS),
        ("objectives are those of k-means, which only KMeans minimises",),
    ),
    "growth": Question(
        "A point in an iteration, for growing numbers of points",
        "point", cases.growth, lambda: [OURS, LLOYD],
    ),
    "gpu": Question(
        "A fit of 20 iterations on one GPU from the same rows, tol 0, a batch of small problems, "
        "and a fit with k-means++",
        "fit", gpu.cases, gpu.contenders,
        ("flash-kmeans rounds to TF32; lloydformer stops earlier if no label changes",),
    ),
}  # fmt: skip
