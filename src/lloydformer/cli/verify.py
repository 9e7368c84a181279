"""`lloydformer verify`: every statement of the paper, measured."""

from typing import Annotated

import typer

from lloydformer.cli.terminal import print_json, print_table, progress, stderr, stdout
from lloydformer.verify.finding import Finding
from lloydformer.verify.statements import STATEMENTS, generator


def verify(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random problems.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure every theorem, lemma and remark of the paper, and every error of its text.

    Status 1 if a verdict is bad. Takes about a minute.
    """
    findings = measure(seed)
    good = all(f.holds for f in findings)
    if json:
        print_json({"seed": seed, "holds": good, "rows": [f.as_dict() for f in findings]})
    else:
        _print(findings)
    return 0 if good else 1


def measure(seed: int) -> list[Finding]:
    """What each statement comes to, on problems drawn with this seed."""
    findings: list[Finding] = []
    try:
        with progress("verify", len(STATEMENTS)) as bar:
            for statement in STATEMENTS:
                findings.append(statement(generator(statement, seed)))
                bar.advance(findings[-1].label)
    except KeyboardInterrupt:
        held = sum(f.holds for f in findings)
        stderr.print(f"stopped: {held} of {len(findings)} statements tried so far hold")
        raise
    return findings


def _print(findings: list[Finding]) -> None:
    columns = ["verdict", "label", "statement", "problems", "deviation", "labels"]
    rows = [
        ["holds" if f.holds else "BAD", f.label, _sentence(f), str(f.problems),
         f"{f.deviation:.1e}", str(f.labels)]
        for f in findings
    ]  # fmt: skip
    print_table(columns, rows, fold="statement")
    held = sum(f.holds for f in findings)
    stdout.print(f"\n{held} of {len(findings)} hold; --json has notes on each")


def _sentence(finding: Finding) -> str:
    return f"{finding.statement}: {finding.printed}" if finding.printed else finding.statement
