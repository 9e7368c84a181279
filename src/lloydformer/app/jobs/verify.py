"""`lloydformer verify`: measure every statement of the paper."""

from collections.abc import Callable

from lloydformer.app.jobs.torch_threads import torch_threads
from lloydformer.paper.verify import statements
from lloydformer.paper.verify.errata import ERRATA
from lloydformer.paper.verify.finding import Finding, Statement
from lloydformer.paper.verify.mixtures import MIXTURES
from lloydformer.paper.verify.worked_example import WORKED_EXAMPLE

N_STATEMENTS = len(statements.STATEMENTS)

# The statements by what they are, in the order of `STATEMENTS`, which `group_findings` relies on.
GROUPS: dict[str, tuple[Statement, ...]] = {
    "theorems": statements.THEOREMS,
    "worked example": WORKED_EXAMPLE,
    "definitions": statements.DEFINITIONS,
    "lemmas": statements.LEMMAS,
    "remarks": statements.REMARKS,
    "mixtures": MIXTURES,
    "errata": ERRATA,
}


def measure_statements(
    seed: int, after: Callable[[Finding], None] = lambda finding: None
) -> list[Finding]:
    """Measure each statement on problems drawn with this seed; `after` is called after each."""
    findings: list[Finding] = []
    with torch_threads(1):  # thousands of small problems
        for statement in statements.STATEMENTS:
            findings.append(statement(statements.generator_for(statement, seed)))
            after(findings[-1])
    return findings


def group_findings(findings: list[Finding]) -> dict[str, list[Finding]]:
    """Return all findings of `measure_statements` by group."""
    remaining = iter(findings)
    return {name: [next(remaining) for _ in group] for name, group in GROUPS.items()}
