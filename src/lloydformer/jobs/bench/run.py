"""Choose the cases and contenders of a question, and measure them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.jobs.bench.cases import CONVERGING
from lloydformer.jobs.bench.measure import taking_part
from lloydformer.jobs.bench.problem import BenchCase, Contender
from lloydformer.jobs.bench.question_names import check_question
from lloydformer.jobs.bench.questions import QUESTIONS, Question
from lloydformer.jobs.bench.result import Result, ask


@dataclass(frozen=True)
class BenchJob:
    """A question, and which of its cases and contenders are measured.

    only: parts of names of cases; empty for all. without: names of peers to leave out. data: a
    folder of .npz sets. `check` raises ValueError if one of them does not exist.
    """

    question_name: str
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    data: Path | None = None
    threads: int = field(default_factory=allowed_threads)
    repeats: int = 5
    seed: int = 0

    @property
    def question(self) -> Question:
        check_question(self.question_name)
        return QUESTIONS[self.question_name]

    @cached_property
    def contenders(self) -> list[Contender]:
        contenders = self.question.contenders()
        names = [c.name for c in contenders if c.name != contenders[0].name]
        for name in self.without:
            if name not in names:
                raise ValueError(f"--without: found {name!r}; the peers are {'; '.join(names)}")
        return [c for c in contenders if c.name not in self.without]

    @cached_property
    def cases(self) -> list[BenchCase]:
        """The cases whose name contains a part of `only`; "k 10" does not match "k 100"."""
        cases = self.question.cases(self.data, self.seed)
        chosen = [
            c for c in cases
            if not self.only or any(f"{word}," in f"{c.name}," for word in self.only)
        ]  # fmt: skip
        if not chosen:
            found, names = ", ".join(self.only), "; ".join(c.name for c in cases)
            raise ValueError(f"--only: found {found}, which no name contains; names are {names}")
        return chosen

    @property
    def skipped(self) -> list[str]:
        """Data sets of the question "convergence" that are not in the folder."""
        if self.question_name != "convergence":
            return []
        if self.data is not None and not self.data.is_dir():
            raise ValueError(f"--data: found {self.data}, which is not a folder; pass a folder of "
                             ".npz sets")  # fmt: skip
        folder = self.data
        return [s for s in CONVERGING.values() if not (folder and (folder / f"{s}.npz").exists())]

    @property
    def n_samples(self) -> int:
        return sum(len(taking_part(c, self.contenders)) for c in self.cases) * self.repeats

    def run(self, after: Callable[[str], None] = lambda what: None) -> Result:
        """Measure; `after` is called after each sample, with its case and contender."""
        settings = {"threads": self.threads, "repeats": self.repeats, "seed": self.seed}
        name, question = self.question_name, self.question
        return ask(name, question, self.cases, self.contenders, settings, after)
