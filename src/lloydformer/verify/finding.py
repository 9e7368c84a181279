"""The result of measuring a statement."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from lloydformer.verify.compare import Deviation

TOLERANCE = 1e-9
"""Largest allowed difference of centers from the algorithm's, in spreads, in float64."""

ErratumKind = Literal["error", "open", "notation", "rounding", "citation", "runs"]
"""What an item of docs/errata.md is.

- error: the text states something that is not so, and a reader who follows it gets a wrong result.
- open: the text leaves a condition or a case open, and the answer matters.
- notation: a slip; the lines around it show what is meant.
- rounding: right in exact arithmetic, not in floating-point arithmetic.
- citation: the cited work has another algorithm.
- runs: the text describes an experiment otherwise than its numbers show.
"""


@dataclass(frozen=True)
class Finding:
    """One line of `lloydformer verify`.

    label: the paper's LaTeX label, or the number in docs/errata.md. problems: number of problems
    tried. deviation: the largest difference of centers, in spreads. labels: number of labels that
    differ. holds: the verdict; for an item of the errata, that it was measured as the page says.
    kind, measured: of an item of the errata, what it is and how often it matters.
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


FAILS = "the paper's text fails {count}, by up to {worst} of the spread; our repair holds"
"""How often what the text prints deviates, and by how much."""

Statement = Callable[[np.random.Generator], Finding]
"""A function that measures a statement on problems drawn with the generator."""


def agreement(label: str, statement: str, deviation: Deviation, note: str = "") -> Finding:
    """Return the finding of a statement that holds if circuit and algorithm agree."""
    return Finding(
        label, statement, deviation.problems, deviation.centers,
        deviation.labels + deviation.weights, deviation.within(TOLERANCE), note,
    )  # fmt: skip


def equality(label: str, statement: str, deviations: list[float], note: str = "") -> Finding:
    """Return the finding of a statement that holds if two expressions are equal up to rounding."""
    worst = float(max(deviations))
    return Finding(label, statement, len(deviations), worst, 0, worst <= TOLERANCE, note)


def erratum(
    number: int,
    kind: ErratumKind,
    statement: str,
    printed: list[float],
    repaired: list[float],
    measured: str = FAILS,
    note: str = "",
) -> Finding:
    """Return the finding of an item of the errata: `printed` deviates and `repaired` does not.

    printed: the deviations of what the text prints or, where it leaves something open, of the
    other choice. measured: a sentence on these deviations; {count} is '3 of 60', {worst} the
    largest.
    """
    wrong = sum(not d <= 1e-6 for d in printed)  # a NaN is wrong as well
    worst = _worst(repaired)
    sentence = measured.format(count=f"{wrong} of {len(printed)}", worst=f"{_worst(printed):.2g}")
    return Finding(
        f"errata {number}", statement, len(printed) + len(repaired), worst, 0,
        wrong > 0 and worst <= TOLERANCE, note, kind, sentence,
    )  # fmt: skip


def _worst(deviations: list[float]) -> float:
    return float(max((d if d == d else np.inf for d in deviations), default=0.0))
