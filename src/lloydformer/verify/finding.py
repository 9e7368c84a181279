"""What a measurement of a statement found."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lloydformer.verify.compare import Deviation

TOLERANCE = 1e-9
"""How far centers may be from the algorithm's, in spreads, in float64."""


@dataclass(frozen=True)
class Finding:
    """One line of `lloydformer verify`.

    label: the paper's LaTeX label, or the number in docs/errata.md. deviation: the largest of
    the centers, in spreads. labels: how many differ. holds: the verdict. printed: how an error
    of the text shows, as it is printed.
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
        return asdict(self)


Statement = Callable[[np.random.Generator], Finding]


def agreement(label: str, statement: str, deviation: Deviation, note: str = "") -> Finding:
    """A statement that holds when circuit and algorithm agree."""
    return Finding(
        label, statement, deviation.problems, deviation.centers,
        deviation.labels + deviation.weights, deviation.within(TOLERANCE), note,
    )  # fmt: skip


def equality(label: str, statement: str, deviations: list[float], note: str = "") -> Finding:
    """A statement that holds when two expressions have the same value, rounding apart."""
    worst = float(max(deviations))
    return Finding(label, statement, len(deviations), worst, 0, worst <= TOLERANCE, note)


def erratum(
    number: int, statement: str, printed: list[float], repaired: list[float], note: str = ""
) -> Finding:
    """An error of the text: it fails as printed and holds as repaired, problem by problem."""
    wrong = sum(not d <= 1e-6 for d in printed)  # a NaN is wrong as well
    worst = _worst(repaired)
    return Finding(
        f"errata {number}", statement, len(printed) + len(repaired), worst, 0,
        wrong > 0 and worst <= TOLERANCE, note,
        f"as printed {wrong} of {len(printed)} wrong, by up to {_worst(printed):.2g}",
    )  # fmt: skip


def _worst(deviations: list[float]) -> float:
    return float(max((d if d == d else np.inf for d in deviations), default=0.0))
