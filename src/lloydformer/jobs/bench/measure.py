"""Times of contenders on the same problems, taken in turns."""

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from lloydformer.jobs.bench.problem import Case, Contender, Fitted, Problem, objective

_LEAST = 0.1
"""Seconds of a sample: fits that take less are done several times in it."""

_JUDGED = 10
"""Fits of a sample whose objectives are averaged."""


@dataclass
class Samples:
    """Seconds of one contender in each repeat, in the question's unit, and what it reached."""

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
    case: Case,
    contenders: Sequence[Contender],
    per: str,
    repeats: int,
    advance: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """The row of a case: every contender's times, and how many times longer than ours it takes."""
    problem = case.make()
    taken = [Samples(c, _fits(c, problem)) for c in contenders]
    for repeat in range(repeats):
        turn = repeat % len(taken)  # nobody is always first
        for samples in taken[turn:] + taken[:turn]:
            _sample(samples, problem, per, repeat)
            advance(f"{case.name}: {samples.contender.name}")
    return compared({s.contender.name: s.summary() for s in taken}, contenders)


def compared(row: dict[str, Any], contenders: Sequence[Contender]) -> dict[str, Any]:
    """Adds `times`, in units of the first contender, and `ahead`: the least of a peer's."""
    first = row[contenders[0].name]["median"]
    for measured in row.values():
        measured["times"] = measured["median"] / first
    peers = [row[c.name]["times"] for c in contenders if c.package != contenders[0].package]
    return {"contenders": row, "ahead": min(peers, default=None)}


def _fits(contender: Contender, problem: Problem) -> int:
    """How many fits fill a sample; it warms up what is loaded when it is first used."""
    _timed(contender, replace(problem, max_iter=2), 0)
    seconds, _ = _timed(contender, replace(problem, max_iter=2), 0)
    return 1 if seconds > _LEAST / 5 else ceil(_LEAST / seconds)


def _sample(samples: Samples, problem: Problem, per: str, repeat: int) -> None:
    seeds = range(repeat * samples.fits, (repeat + 1) * samples.fits)
    done = [_timed(samples.contender, problem, seed) for seed in seeds]
    iterations = sum(fitted.n_iter for _, fitted in done)
    units = {"fit": len(done), "iteration": iterations, "point": iterations * len(problem.points)}
    samples.seconds.append(sum(seconds for seconds, _ in done) / units[per])
    if repeat == 0:
        samples.n_iter = iterations / len(done)
        samples.objective = statistics.mean(
            objective(problem.points, fitted.centers) for _, fitted in done[:_JUDGED]
        )


def _timed(contender: Contender, problem: Problem, seed: int) -> tuple[float, Fitted]:
    with warnings.catch_warnings():  # max_iter reached, or fewer clusters: the table says so
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        fitted = contender.fit(problem, seed)
        return time.perf_counter() - began, fitted
