"""`lloydformer verify`: every statement of the paper, measured."""

from collections import Counter
from statistics import median
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
    details: Annotated[
        bool, typer.Option("--details", help="Print each statement, not only their groups.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure every statement of the paper.

    These are its theorems, lemmas and remarks, and the items of the errata, each with its kind.
    Status 1 if one does not hold. Takes about a minute, on one thread.
    """
    findings = _measured(seed)
    good = all(f.holds for f in findings)
    if json:
        print_json({"seed": seed, "holds": good, "rows": [f.as_dict() for f in findings]})
    else:
        if details:
            _print_each(findings)
        _print_groups(findings)
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


def _print_each(findings: "list[Finding]") -> None:
    """A line for each statement, and what was measured below it."""
    for finding in findings:
        stdout.print(f"{_verdict(finding):5} {finding.label}: {finding.statement}", markup=False)
        stdout.print(f"      {_measured_words(finding)}", style="dim", markup=False)
    stdout.print()


def _verdict(finding: "Finding") -> str:
    return "holds" if finding.holds else "BAD"


def _measured_words(finding: "Finding") -> str:
    if finding.kind:
        return f"{finding.kind}: {finding.measured}"
    words = f"{finding.problems} problems, centers differ by at most {finding.deviation:.1e}"
    return words + (f", {finding.labels} labels differ" if finding.labels else "")


def _print_groups(findings: "list[Finding]") -> None:
    """A line for each group, then the statements that do not hold, and what to read."""
    from lloydformer.jobs.verify import grouped

    groups = grouped(findings)
    rows = [
        [name, f"{sum(f.holds for f in found)} of {len(found)}", f"{_n_problems(found):,}",
         f"{median(f.deviation for f in found):.0e}"]
        for name, found in groups.items()
    ]  # fmt: skip
    print_table(["the paper's", "hold", "problems", "median deviation"], rows)
    stdout.print("\n" + _errata_words(groups["errata"]), markup=False)
    for bad in (f for f in findings if not f.holds):
        stdout.print(f"BAD   {bad.label}: {bad.statement}", style="bold red", markup=False)
        stdout.print(f"      {_measured_words(bad)}", markup=False)
    held = sum(f.holds for f in findings)
    stdout.print(
        f"{held} of {len(findings)} hold. --details prints each of them, --json a note on each too."
    )


def _n_problems(findings: "list[Finding]") -> int:
    return sum(finding.problems for finding in findings)


def _errata_words(findings: "list[Finding]") -> str:
    """What the errata are, and what it means that they hold."""
    kinds = Counter(finding.kind for finding in findings)
    worst = next(f for f in findings if f.kind == "error")
    return (
        "Theorems to remarks: the circuit gives the centers of the algorithm. Their deviation is "
        "in spreads of the points.\n"
        f"Errata: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}. Each "
        "was measured as docs/errata.md says.\n"
        f"For example {worst.label} ({worst.statement}): {worst.measured}."
    )
