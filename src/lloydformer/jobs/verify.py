"""`lloydformer verify`: measure every statement of the paper."""

from collections.abc import Callable

from lloydformer.verify.finding import Finding
from lloydformer.verify.statements import STATEMENTS, generator

N_STATEMENTS = len(STATEMENTS)


def measure_statements(
    seed: int, after: Callable[[Finding], None] = lambda finding: None
) -> list[Finding]:
    """Measure each statement on problems drawn with this seed; `after` is called after each."""
    findings: list[Finding] = []
    for statement in STATEMENTS:
        findings.append(statement(generator(statement, seed)))
        after(findings[-1])
    return findings
