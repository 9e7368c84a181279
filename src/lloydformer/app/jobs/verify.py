"""`lloydformer verify`: measure every statement of the paper."""

from collections.abc import Callable

from lloydformer.jobs.one_thread import one_thread
from lloydformer.verify.definitions import DEFINITIONS
from lloydformer.verify.errata import ERRATA
from lloydformer.verify.finding import Finding, Statement
from lloydformer.verify.lemmas import LEMMAS
from lloydformer.verify.remarks import REMARKS
from lloydformer.verify.statements import STATEMENTS, generator
from lloydformer.verify.theorems import THEOREMS
from lloydformer.verify.worked_example import WORKED_EXAMPLE

N_STATEMENTS = len(STATEMENTS)

GROUPS: dict[str, tuple[Statement, ...]] = {
    "theorems": THEOREMS,
    "worked example": WORKED_EXAMPLE,
    "definitions": DEFINITIONS,
    "lemmas": LEMMAS,
    "remarks": REMARKS,
    "errata": ERRATA,
}
"""The statements by what they are, in the order of `STATEMENTS`."""


def measure_statements(
    seed: int, after: Callable[[Finding], None] = lambda finding: None
) -> list[Finding]:
    """Measure each statement on problems drawn with this seed; `after` is called after each."""
    findings: list[Finding] = []
    with one_thread():
        for statement in STATEMENTS:
            findings.append(statement(generator(statement, seed)))
            after(findings[-1])
    return findings


def grouped(findings: list[Finding]) -> dict[str, list[Finding]]:
    """All findings of `measure_statements`, by group."""
    left = iter(findings)
    return {name: [next(left) for _ in group] for name, group in GROUPS.items()}
