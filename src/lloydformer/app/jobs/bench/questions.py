"""The questions of the benchmark, and the job that measures one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from lloydformer.app.jobs.bench import cases, contenders, gpu
from lloydformer.app.jobs.bench.contenders import CHUNKED, ELKAN, LLOYD, OURS, PASS, PRODUCTS
from lloydformer.app.jobs.bench.measure import BenchCase, Contender, measure
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.fork_safety import cached_property
from lloydformer.paper.provenance import provenance


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes
    ----------
    asks : str
        What is measured.
    per : str
        The unit that a time is divided by: "fit", "call", "iteration", or "point" (a point in an
        iteration).
    cases : callable
        Returns the cases for a seed.
    contenders : callable
        Returns those that are installed.
    notes : tuple of str
        Lines below the table.
    data_sets : tuple of str
        Real data sets for which there are further cases.
    data_cases : callable
        Returns the cases of those that are in a folder, for a seed.
    """

    asks: str
    per: str
    cases: Callable[[int], list[BenchCase]]
    contenders: Callable[[], list[Contender]]
    notes: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()
    data_cases: Callable[[Path, int], list[BenchCase]] = lambda folder, seed: []


# faiss has no tol, so it has no place in fits until convergence.
def _stopping_contenders() -> list[Contender]:
    return [OURS, LLOYD, ELKAN, *contenders.optional_contenders(with_tol=True)]


QUESTIONS = {
    "iteration": Question(
        "A fit of 20 iterations from the same rows, tol 0, divided by its iterations",
        "iteration",
        cases.iteration,
        lambda: [OURS, CHUNKED, LLOYD, ELKAN, *contenders.optional_contenders()],
    ),
    "convergence": Question(
        "A fit until it stops, tol 1e-4, from the same rows",
        "fit",
        cases.convergence,
        _stopping_contenders,
        ("faiss-cpu has no tol and is left out",),
        tuple(cases.CONVERGING.values()),
        cases.convergence_of_sets,
    ),
    "small": Question("A fit of a small problem", "fit", cases.small, _stopping_contenders),
    "large_k": Question(
        "A fit of 20 iterations with many centers, divided by its iterations; and one pass "
        "without bounds beside the matrix product of points and centers",
        "iteration",
        cases.large_k,
        lambda: [OURS, PASS, LLOYD, *contenders.optional_contenders(), *PRODUCTS],
        ("the products compute no minimum, no label and no sum",),
    ),
    "seeding": Question(
        "A whole fit: k-means++ and 20 iterations, tol 0",
        "fit",
        cases.seeding,
        lambda: [OURS, LLOYD, *contenders.optional_contenders(with_tol=True)],
        ("each package draws its own start",),
    ),
    "predict": Question(
        "A call of a fitted model",
        "call",
        cases.predict,
        lambda: [OURS, LLOYD, *contenders.optional_contenders()],
    ),
    "sparse": Question(
        "A fit of 20 iterations on a CSR matrix, divided by its iterations",
        "iteration",
        cases.sparse_rows,
        _stopping_contenders,
    ),
    "minibatch": Question(
        "Batches of rows: partial_fit, and a fit", "call", cases.minibatch, lambda: [OURS, LLOYD]
    ),
    "algorithms": Question(
        "An iteration of each algorithm, compared with one of KMeans",
        "iteration",
        cases.algorithms,
        contenders.our_algorithms,
        ("objectives are those of k-means, which only KMeans minimises",),
    ),
    "growth": Question(
        "A point in an iteration, for growing numbers of points",
        "point",
        cases.growth,
        lambda: [OURS, LLOYD],
    ),
    "tails": Question(
        "A fit of 5 iterations from the same rows, tol 0, and a call of predict, on rows with "
        "light and heavy tails",
        "call",
        cases.tails,
        lambda: [OURS, LLOYD, *contenders.optional_contenders()],
        (
            "objectives differ where a contender loses digits on far rows; wrong labels may empty "
            "clusters, and far rows that fill them may lower the objective by chance",
        ),
        cases.TAILED,
        cases.tails_of_sets,
    ),
    "gpu": Question(
        "A fit of 20 iterations on one GPU from the same rows, tol 0, a batch of small problems, "
        "and a fit with k-means++",
        "fit",
        gpu.cases,
        gpu.contenders,
        ("flash-kmeans rounds to TF32; lloydformer stops earlier if no label changes",),
    ),
}


@dataclass(frozen=True)
class BenchJob:
    """A question, and which of its cases and contenders are measured.

    Attributes
    ----------
    name : str
        The question.
    only : sequence of str
        Parts of names of cases; empty for all.
    without : sequence of str
        Names of peers to leave out.
    data : Path or None
        A folder of .npz sets.
    threads, repeats, seed : int
        Threads of each contender, samples of each, and the seed of points and starts.
    """

    name: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    data: Path | None = None
    threads: int = field(default_factory=allowed_threads)
    repeats: int = 5
    seed: int = 0

    @property
    def question(self) -> Question:
        return QUESTIONS[self.name]

    @cached_property
    def contenders(self) -> list[Contender]:
        available = self.question.contenders()
        names = [c.name for c in available if c.name != available[0].name]
        for name in self.without:
            if name not in names:
                raise ValueError(f"--without: found {name!r}; the peers are {'; '.join(names)}")
        return [c for c in available if c.name not in self.without]

    @cached_property
    def cases(self) -> list[BenchCase]:
        """The cases whose name contains a part of `only`."""
        available = self.question.cases(self.seed)
        if self.data is not None:
            available += self.question.data_cases(self.data, self.seed)
        # A part ends where the name has a comma or ends: "k 10" does not match "k 100".
        chosen = [
            case
            for case in available
            if not self.only or any(f"{part}," in f"{case.name}," for part in self.only)
        ]
        if not chosen:
            found, names = ", ".join(self.only), "; ".join(case.name for case in available)
            raise ValueError(f"--only: found {found}, which no name contains; names are {names}")
        return chosen

    @property
    def skipped(self) -> list[str]:
        """Data sets of the question that are not in the folder."""
        sets = self.question.data_sets
        if sets and self.data is not None and not self.data.is_dir():
            raise ValueError(
                f"--data: found {self.data}, which is not a folder; pass a folder of .npz sets"
            )
        return [s for s in sets if self.data is None or not (self.data / f"{s}.npz").exists()]

    @property
    def n_samples(self) -> int:
        return sum(len(case.select(self.contenders)) for case in self.cases) * self.repeats

    def run(self, after: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
        """Measure every case with every contender.

        `after` is called after each sample, with its case and contender.
        """
        question = self.question
        with contenders.limit_threads(self.threads):
            rows = {
                case.name: measure(case, self.contenders, question.per, self.repeats, after)
                for case in self.cases
            }
        # A time means nothing without the versions of all contenders.
        packages = {c.package for c in self.contenders} - {"lloydformer"}
        settings = {"threads": self.threads, "repeats": self.repeats, "seed": self.seed}
        return {
            "question": self.name,
            "asks": question.asks,
            "per": question.per,
            "settings": {**settings, "dtype": "float32"},
            "provenance": provenance(*sorted(packages)),
            "missing": contenders.missing_packages(),
            "notes": list(question.notes),
            "rows": rows,
            "ahead": mean_ahead(rows),
        }


def mean_ahead(rows: dict[str, Any]) -> float | None:
    """Return the geometric mean of `ahead` over the rows: the time of the best peer over ours."""
    ahead = [row["ahead"] for row in rows.values() if row["ahead"] is not None]
    return geometric_mean(ahead) if ahead else None
