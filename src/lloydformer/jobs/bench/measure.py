"""Time contenders on the same problem, in turns."""

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from lloydformer.jobs.bench.problem import BenchCase, BenchProblem, Contender, Fitted, objective

_MIN_SECONDS = 0.1
"""Minimum duration of a sample: shorter fits are repeated in it."""

_MAX_OBJECTIVES = 10
"""Fits of a sample whose objectives are averaged."""


@dataclass
class Samples:
    """The samples of one contender.

    fits: fits in a sample. seconds: a number for each sample, in the unit of the question. n_iter,
    objective: means over the fits of the first sample.
    """

    contender: Contender
    fits: int
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
            "fits": self.fits * len(self.seconds),
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
    problem = case.make()
    taken = [Samples(c, _fits(c, problem)) for c in contenders]
    for repeat in range(repeats):
        turn = repeat % len(taken)  # no contender always goes first
        for samples in taken[turn:] + taken[:turn]:
            _sample(samples, problem, per, repeat)
            advance(f"{case.name}: {samples.contender.name}")
    return compared({s.contender.name: s.summary() for s in taken}, contenders)


def compared(row: dict[str, Any], contenders: Sequence[Contender]) -> dict[str, Any]:
    """Add `times`, the median over that of the first contender, and `ahead`, a peer's least."""
    first = row[contenders[0].name]["median"]
    for measured in row.values():
        measured["times"] = measured["median"] / first
    peers = [row[c.name]["times"] for c in contenders if c.package != contenders[0].package]
    return {"contenders": row, "ahead": min(peers, default=None)}


def _fits(contender: Contender, problem: BenchProblem) -> int:
    """The number of fits that fill a sample; two short fits warm up and measure."""
    _timed(contender, replace(problem, max_iter=2), 0)
    seconds, _ = _timed(contender, replace(problem, max_iter=2), 0)
    return 1 if seconds > _MIN_SECONDS / 5 else ceil(_MIN_SECONDS / seconds)


def _sample(samples: Samples, problem: BenchProblem, per: str, repeat: int) -> None:
    seeds = range(repeat * samples.fits, (repeat + 1) * samples.fits)
    done = [_timed(samples.contender, problem, seed) for seed in seeds]
    iterations = sum(fitted.n_iter for _, fitted in done)
    units = {"fit": len(done), "iteration": iterations, "point": iterations * len(problem.points)}
    samples.seconds.append(sum(seconds for seconds, _ in done) / units[per])
    if repeat == 0:
        samples.n_iter = iterations / len(done)
        samples.objective = statistics.mean(
            objective(problem.points, fitted.centers) for _, fitted in done[:_MAX_OBJECTIVES]
        )


def _timed(contender: Contender, problem: BenchProblem, seed: int) -> tuple[float, Fitted]:
    with warnings.catch_warnings():  # max_iter reached, or fewer clusters: expected
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        fitted = contender.fit(problem, seed)
        return time.perf_counter() - began, fitted
