"""Time contenders on the same problem, in turns."""

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from lloydformer.jobs.bench.gpu import device_objective
from lloydformer.jobs.bench.problem import (
    BenchCase,
    BenchProblem,
    Contender,
    Fitted,
    Work,
    objective,
)  # fmt: skip

_MIN_SECONDS = 0.1
"""Minimum duration of a sample: shorter calls are repeated in it."""

_MAX_OBJECTIVES = 10
"""Calls of a sample whose objectives are averaged."""


@dataclass
class Samples:
    """The samples of one contender.

    work: what is timed. calls: calls in a sample. seconds: a number for each sample, in the unit of
    the question. n_iter, objective: means over the calls of the first sample.
    """

    name: str
    work: Work
    calls: int
    seconds: list[float] = field(default_factory=list)
    n_iter: float = 0.0
    objective: float = 0.0

    def summary(self) -> dict[str, Any]:
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
    advance: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Measure one case; returns the row of the result.

    `advance` is called after each sample.
    """
    problem, able = case.make(), taking_part(case, contenders)
    taken = [Samples(c.name, c.prepared(problem), _calls(c, problem)) for c in able]
    for repeat in range(repeats):
        turn = repeat % len(taken)  # no contender always goes first
        for samples in taken[turn:] + taken[:turn]:
            _sample(samples, problem, per, repeat)
            advance(f"{case.name}: {samples.name}")
    row = compared({s.name: s.summary() for s in taken}, able)
    for contender in able:
        if case.work == "fit" and hasattr(contender, "agreement"):
            row["contenders"][contender.name]["agreement"] = contender.agreement(problem)
    return row


def taking_part(case: BenchCase, contenders: Sequence[Contender]) -> list[Contender]:
    """The contenders that do the work of a case."""
    return [c for c in contenders if c.does(case.work)]


def compared(row: dict[str, Any], contenders: Sequence[Contender]) -> dict[str, Any]:
    """Add `times`, the median over that of the first contender, and `ahead`, a peer's least."""
    first = row[contenders[0].name]["median"]
    for measured in row.values():
        measured["times"] = measured["median"] / first
    peers = [row[c.name]["times"] for c in contenders if c.package != contenders[0].package]
    return {"contenders": row, "ahead": min(peers, default=None)}


def _calls(contender: Contender, problem: BenchProblem) -> int:
    """The number of calls that fill a sample; two short ones warm up and measure."""
    work = contender.prepared(replace(problem, max_iter=2))
    _timed(work, 0)
    seconds, _ = _timed(work, 0)
    return 1 if seconds > _MIN_SECONDS / 5 else ceil(_MIN_SECONDS / seconds)


def _sample(samples: Samples, problem: BenchProblem, per: str, repeat: int) -> None:
    seeds = range(repeat * samples.calls, (repeat + 1) * samples.calls)
    gc.collect()
    gc.disable()  # as timeit does
    try:
        done = [_timed(samples.work, seed) for seed in seeds]
    finally:
        gc.enable()
    iterations = sum(fitted.iterations for _, fitted in done)
    points = iterations * problem.points.shape[0]
    units = {"fit": len(done), "call": len(done), "iteration": iterations, "point": points}
    samples.seconds.append(sum(seconds for seconds, _ in done) / units[per])
    if repeat == 0:
        samples.n_iter = iterations / len(done)
        samples.objective = statistics.mean(
            _objective(problem, fitted) for _, fitted in done[:_MAX_OBJECTIVES]
        )


def _objective(problem: BenchProblem, fitted: Fitted) -> float:
    if isinstance(problem.points, Tensor):
        return device_objective(problem.points, fitted.on_host)
    return objective(problem.points, fitted)


def _timed(work: Work, seed: int) -> tuple[float, Fitted]:
    with warnings.catch_warnings():  # max_iter reached, or fewer clusters: expected
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        fitted = work(seed)
        return time.perf_counter() - began, fitted
