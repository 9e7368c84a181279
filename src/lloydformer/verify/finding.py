"""The result of measuring a statement."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lloydformer.verify.compare import Deviation

TOLERANCE = 1e-9
"""Largest allowed difference of centers from the algorithm's, in spreads, in float64."""


@dataclass(frozen=True)
class Finding:
    """One line of `lloydformer verify`.

    label: the paper's LaTeX label, or the number in docs/errata.md. problems: number of problems
    tried. deviation: the largest difference of centers, in spreads. labels: number of labels that
    differ. holds: the verdict. printed: for an erratum, how the printed text fails.
    """

    label: str
    statement: str
    problems: int
    deviation: float
    labels: int
    holds: bool
    note: str = ""
    printed: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


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
    number: int, statement: str, printed: list[float], repaired: list[float], note: str = ""
) -> Finding:
    """Return the finding of an error in the text: it fails as printed and holds as repaired."""
    wrong = sum(not d <= 1e-6 for d in printed)  # a NaN is wrong as well
    worst = _worst(repaired)
    return Finding(
        f"errata {number}", statement, len(printed) + len(repaired), worst, 0,
        wrong > 0 and worst <= TOLERANCE, note,
        f"as printed {wrong} of {len(printed)} wrong, by up to {_worst(printed):.2g}",
    )  # fmt: skip


def _worst(deviations: list[float]) -> float:
    return float(max((d if d == d else np.inf for d in deviations), default=0.0))
