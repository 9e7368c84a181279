"""`lloydformer verify`: every statement of the paper, measured."""

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.app.cli.terminal import print_json, print_table, progress, stdout
from lloydformer.app.options import Json, seed_option

if TYPE_CHECKING:
    from lloydformer.paper.verify.finding import Finding


def verify(
    seed: Annotated[int, seed_option(help="Seed of the random problems.")] = 0,
    details: Annotated[
        bool, typer.Option("--details", help="Print each statement, not only their groups.")
    ] = False,
    json: Json = False,
) -> int:
    """Check every statement of the paper.

    These are its theorems, lemmas and remarks, and the items of the errata, each with its kind.
    Status 1 if one does not hold. Takes about a minute, on one thread.
    """
    from lloydformer.app.jobs.verify import N_STATEMENTS, measure_statements

    done: list[Finding] = []

    def after(finding: "Finding") -> None:
        done.append(finding)
        bar.step(finding.label)

    def describe_stop(count: int) -> str:
        held = sum(finding.holds for finding in done)
        return f"stopped: {held} of {count} statements measured so far hold"

    with progress("verify", N_STATEMENTS, describe_stop) as bar:
        findings = measure_statements(seed, after)
    # The status tells scripts the verdict, in every form of output.
    good = all(finding.holds for finding in findings)
    if json:
        print_json({"seed": seed, "holds": good, "rows": [f.as_dict() for f in findings]})
        return 0 if good else 1
    if details:
        for finding in findings:
            verdict = "holds" if finding.holds else "BAD"
            stdout.print(f"{verdict:5} {finding.label}: {finding.statement}")
            stdout.print(f"      {_describe_measurement(finding)}", style="dim")
        stdout.print()
    _print_groups(findings)
    return 0 if good else 1


def _describe_measurement(finding: "Finding") -> str:
    if finding.kind:
        return f"{finding.kind}: {finding.measured}"
    words = f"{finding.problems} problems, centers differ by at most {finding.deviation:.1e}"
    return words + (f", {finding.labels} labels differ" if finding.labels else "")


def _print_groups(findings: "list[Finding]") -> None:
    """Print a line for each group, then the statements that do not hold, and what to read."""
    from lloydformer.app.jobs.verify import group_findings

    groups = group_findings(findings)
    rows = []
    for name, members in groups.items():
        held, problems = sum(f.holds for f in members), sum(f.problems for f in members)
        deviation = median(f.deviation for f in members)
        rows.append([name, f"{held} of {len(members)}", f"{problems:,}", f"{deviation:.0e}"])
    print_table(["the paper's", "hold", "problems", "median deviation"], rows)
    # One error is quoted, so that readers see what an item looks like.
    kinds = Counter(finding.kind for finding in groups["errata"]).most_common()
    worst = next(f for f in groups["errata"] if f.kind == "error")
    stdout.print(
        "\nTheorems to remarks: the circuit gives the centers of the algorithm. Their deviation is "
        "in spreads of the points.\n"
        f"Errata: {', '.join(f'{count} {kind}' for kind, count in kinds)}. Each "
        "was measured as docs/errata.md says.\n"
        f"For example {worst.label} ({worst.statement}): {worst.measured}."
    )
    for bad in (f for f in findings if not f.holds):
        stdout.print(f"BAD   {bad.label}: {bad.statement}", style="bold red")
        stdout.print(f"      {_describe_measurement(bad)}")
    held = sum(f.holds for f in findings)
    stdout.print(
        f"{held} of {len(findings)} hold. --details prints each of them, --json a note on each too."
    )
