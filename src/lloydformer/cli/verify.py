"""`lloydformer verify`: every statement of the paper, measured."""

from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.cli.options import LARGEST_SEED, integer
from lloydformer.cli.terminal import print_json, print_table, progress, stderr, stdout

if TYPE_CHECKING:
    from lloydformer.verify.finding import Finding


def verify(
    seed: Annotated[
        int, integer(least=0, most=LARGEST_SEED, help="Seed of the random problems.")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure every statement of the paper.

    These are its theorems, lemmas and remarks, and the items of the errata, each with its kind.
    Status 1 if one does not hold. Takes about a minute.
    """
    findings = _measured(seed)
    good = all(f.holds for f in findings)
    if json:
        print_json({"seed": seed, "holds": good, "rows": [f.as_dict() for f in findings]})
    else:
        _print(findings)
    return 0 if good else 1


def _measured(seed: int) -> "list[Finding]":
    """Measure with a progress bar; on Ctrl-C, print how many hold so far."""
    from lloydformer.jobs.verify import N_STATEMENTS, measure_statements

    done: list[Finding] = []
    with progress("verify", N_STATEMENTS) as bar:

        def after(finding: "Finding") -> None:
            done.append(finding)
            bar.advance(finding.label)

        try:
            return measure_statements(seed, after)
        except KeyboardInterrupt:
            held = sum(finding.holds for finding in done)
            stderr.print(f"stopped: {held} of {len(done)} statements measured so far hold")
            raise


def _print(findings: "list[Finding]") -> None:
    columns = ["verdict", "label", "statement", "problems", "deviation", "labels"]
    rows = [
        ["holds" if f.holds else "BAD", f.label, _sentence(f), str(f.problems),
         f"{f.deviation:.1e}", str(f.labels)]
        for f in findings
    ]  # fmt: skip
    print_table(columns, rows, fold="statement")
    held = sum(f.holds for f in findings)
    stdout.print(f"\n{held} of {len(findings)} hold; --json adds a note on each")


def _sentence(finding: "Finding") -> str:
    if not finding.kind:
        return finding.statement
    return f"({finding.kind}) {finding.statement}: {finding.measured}"
