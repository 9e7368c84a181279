"""`lloydformer reproduce`: make tables and figures of the paper again, with verdicts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lloydformer.cli.options import LARGEST_SEED, integer
from lloydformer.cli.terminal import (
    print_json,
    print_records,
    print_table,
    progress,
    stderr,
    stdout,
)
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.storage.atomic import check_writable

if TYPE_CHECKING:
    from lloydformer.paper.artefact import Artefact
    from lloydformer.paper.scope import Scope
    from lloydformer.paper.verdict import Verdict

Results = dict[str, dict[str, Any]]
"""Results by label, as JSON."""


def reproduce(
    label: Annotated[str, typer.Argument(help=f"all, or one of {', '.join(LABELS)}.")] = "all",
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="The paper's whole protocol, or a few minutes of it."),
    ] = False,
    trials: Annotated[
        int | None, integer(help="Number of trials or tasks of each setting.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[
        int, integer(least=0, most=LARGEST_SEED, help="Seed of all random numbers.")
    ] = 0,
    page: Annotated[bool, typer.Option("--page", help="Also write one page, paper.html.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")] = Path(
        "paper-again"
    ),
    force: Annotated[bool, typer.Option("--force", help="Make results again that exist.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make the paper's tables and figures again, with verdicts.

    A verdict is on a claim that the paper makes (its sentence is quoted), on a number of it, or a
    finding beyond it; these are counted apart. A claim that does not hold is a result and no
    error: the status is 0 if all was made, and 2 if a label could not be made.

    Each label writes LABEL.json, LABEL.md and its pictures. --quick takes minutes on two cores and
    uses the weights and training logs in the package; --full trains and samples as much as the
    paper. Finished parts are kept: run the same command again to continue. Real data come from the
    folder LLOYDFORMER_DATA, or from OpenML.
    """
    wanted = [artefact(name) for name in (LABELS if label == "all" else [label])]
    from lloydformer.paper.reproduce import PAGE, write_page
    from lloydformer.paper.scope import Scope

    scope = Scope(full, trials, device, seed)
    _require_matplotlib()
    check_writable(output / PAGE)
    results, failed = _made(wanted, scope, output, force)
    if page and results:
        write_page(results, output)
    _show(results, label == "all", json)
    stderr.print(f"written: {output}{f' ({PAGE})' if page and results else ''}", soft_wrap=True)
    for name, reason in failed.items():
        stderr.print(f"lloydformer: {name}: {reason}", markup=False, soft_wrap=True)
    if failed:
        raise typer.Exit(2)


def _made(
    wanted: "Sequence[Artefact]", scope: "Scope", folder: Path, force: bool
) -> tuple[Results, dict[str, str]]:
    """Make the artefacts with a progress bar; on Ctrl-C, print what is kept."""
    from lloydformer.paper.reproduce import count_pieces, reproduce_all

    with progress("reproduce", count_pieces(wanted, scope)) as bar:
        try:
            return reproduce_all(wanted, scope, folder, force, bar.advance)
        except KeyboardInterrupt:
            stderr.print("stopped: finished parts are kept; run the same command to continue")
            raise


def _show(results: Results, several: bool, json: bool) -> None:
    if json:
        return print_json({"labels": results} if several else next(iter(results.values()), {}))
    from lloydformer.paper.verdict_tables import summary

    every: list[Verdict] = []
    for name, result in results.items():
        of = artefact(name)
        for table in [] if several else of.tables(result):
            print_table(table.columns, table.rows, title=table.caption)
            stdout.print()
        every += _show_verdicts(of, of.verdicts(result))
    if len(results) > 1:
        stdout.print(f"all: {summary(every)}", markup=False, soft_wrap=True)
    return None


def _show_verdicts(of: "Artefact", verdicts: "Sequence[Verdict]") -> "Sequence[Verdict]":
    from lloydformer.paper.verdict_tables import summary, verdict_tables

    heading = f"{of.title} ({', '.join(of.cites)}): {summary(verdicts)}"
    stdout.print(heading, markup=False, soft_wrap=True)
    for table in verdict_tables(verdicts):
        print_records(table.columns, table.rows, table.caption)
    stdout.print()
    return verdicts


def _require_matplotlib() -> None:
    from lloydformer.plots.axes import require_matplotlib

    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(str(error)) from None
