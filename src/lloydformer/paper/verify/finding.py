"""The result of measuring a statement, and how statements are judged."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, Literal, NamedTuple

import numpy as np

from lloydformer.paper.verify.compare import Deviation

# Largest allowed difference of centers from the algorithm's, in spreads, in float64.
TOLERANCE = 1e-9

# The kinds of items of docs/errata.md.
# error: the text states something that is not so, and a reader who follows it gets a wrong result.
# open: the text leaves a condition or a case open, and the answer matters.
# notation: a slip; the lines around it show what is meant.
# rounding: right in exact arithmetic, not in floating-point arithmetic.
# citation: the cited work has another algorithm.
# runs: the text describes an experiment otherwise than its numbers show.
ErratumKind = Literal["error", "open", "notation", "rounding", "citation", "runs"]


@dataclass(frozen=True)
class Finding:
    """One line of `lloydformer verify`.

    Attributes
    ----------
    label : str
        The paper's LaTeX label, or the number in docs/errata.md.
    statement : str
        What the paper says, in a few words.
    problems : int
        Number of problems tried.
    deviation : float
        The largest difference of centers, in spreads.
    labels : int
        Number of labels that differ.
    holds : bool
        The verdict; for an item of the errata, that it was measured as the page says.
    note : str
        More numbers.
    kind, measured : str
        Of an item of the errata, what it is and how often it matters.
    """

    label: str
    statement: str
    problems: int
    deviation: float
    labels: int
    holds: bool
    note: str = ""
    kind: ErratumKind | Literal[""] = ""
    measured: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


# A function that measures a statement on problems drawn with the generator.
Statement = Callable[[np.random.Generator], Finding]


def about(label: str) -> Callable[[Statement], Statement]:
    """Decorate a statement: store the label that it is about, for `paper.text_map`."""

    def remember(statement: Statement) -> Statement:
        statement.label = label  # type: ignore[attr-defined]
        return statement

    return remember


def judge_agreement(label: str, statement: str, deviation: Deviation) -> Finding:
    """Return the finding of a statement that holds if circuit and algorithm agree."""
    differing = deviation.labels + deviation.weights
    holds = deviation.within(TOLERANCE)
    return Finding(label, statement, deviation.problems, deviation.centers, differing, holds)


def judge_equality(
    label: str, statement: str, deviations: Sequence[float], note: str = ""
) -> Finding:
    """Return the finding of a statement that holds if two expressions are equal up to rounding."""
    worst = float(max(deviations))
    return Finding(label, statement, len(deviations), worst, 0, worst <= TOLERANCE, note)


def equality(
    label: str, statement: str, n_problems: int = 40, note: str = ""
) -> Callable[[Callable[[np.random.Generator], float]], Statement]:
    """Decorate a function that returns the deviation on one random problem: make it a statement.

    The statement holds if all deviations are 0 up to rounding.
    """

    def make_statement(deviation: Callable[[np.random.Generator], float]) -> Statement:
        @wraps(deviation)
        def measure(rng: np.random.Generator) -> Finding:
            deviations = [deviation(rng) for _ in range(n_problems)]
            return judge_equality(label, statement, deviations, note)

        return about(label)(measure)

    return make_statement


class PrintedAndRepaired(NamedTuple):
    """The measurement of an item of the errata.

    Attributes
    ----------
    printed : sequence of float
        Deviations of what the text prints or, where it leaves something open, of the other choice.
    repaired : sequence of float
        Deviations of our repair.
    measured : str
        A sentence on `printed`; {count} is '3 of 60', {worst} the largest.
    note : str
        More numbers.
    """

    printed: Sequence[float]
    repaired: Sequence[float]
    measured: str = (
        "the paper's text fails {count}, by up to {worst} of the spread; our repair holds"
    )
    note: str = ""


def judge_erratum(
    number: int, kind: ErratumKind, statement: str, item: PrintedAndRepaired
) -> Finding:
    """Return the finding of an item of the errata: the text deviates and the repair does not."""
    worst, count = _largest(item.repaired), count_wrong(item.printed)
    return Finding(
        label=f"errata {number}",
        statement=statement,
        problems=len(item.printed) + len(item.repaired),
        deviation=worst,
        labels=0,
        holds=any(map(is_wrong, item.printed)) and worst <= TOLERANCE,
        note=item.note,
        kind=kind,
        measured=item.measured.format(count=count, worst=f"{_largest(item.printed):.2g}"),
    )


def erratum(
    number: int, kind: ErratumKind, statement: str
) -> Callable[[Callable[[np.random.Generator], PrintedAndRepaired]], Statement]:
    """Decorate a function that measures an item of the errata: make it a statement."""

    def make_statement(item: Callable[[np.random.Generator], PrintedAndRepaired]) -> Statement:
        @wraps(item)
        def measure(rng: np.random.Generator) -> Finding:
            return judge_erratum(number, kind, statement, item(rng))

        return about(f"errata {number}")(measure)

    return make_statement


def is_wrong(deviation: float) -> bool:
    """Return whether a deviation is above rounding, which a NaN is as well."""
    # 1e-6, a thousand times TOLERANCE, was chosen by hand; not >, which is false of a NaN
    return not deviation <= 1e-6


def count_wrong(deviations: Sequence[float]) -> str:
    """Return how many deviations are wrong, as '3 of 60'."""
    return f"{sum(map(is_wrong, deviations))} of {len(deviations)}"


def _largest(deviations: Sequence[float]) -> float:
    """Return the largest deviation, a NaN as infinity; 0 of none."""
    return float(max((np.inf if np.isnan(d) else d for d in deviations), default=0.0))
