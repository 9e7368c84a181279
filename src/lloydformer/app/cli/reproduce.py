"""`lloydformer reproduce`: tables and figures of the paper, with verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.app.cli.terminal import (
    print_json,
    print_records,
    print_table,
    progress,
    stderr,
    stdout,
)
from lloydformer.app.options import Json, force_option, integer, seed_option
from lloydformer.data.storage.atomic_files import check_writable
from lloydformer.paper.artefact import AUTHORS, BY_AUTHORS, LABELS, Scope, load_artefact

if TYPE_CHECKING:
    from lloydformer.paper.verdict import Verdict


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
    seed: Annotated[int, seed_option(help="Seed of all random numbers.")] = 0,
    authors: Annotated[
        bool,
        typer.Option("--authors", help=f"By the authors' public code; {', '.join(AUTHORS)}."),
    ] = False,
    page: Annotated[bool, typer.Option("--page", help="Also write one page, paper.html.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")] = Path(
        "paper-again"
    ),
    force: Annotated[bool, force_option(help="Recompute results that exist.")] = False,
    json: Json = False,
) -> None:
    """Reproduce the paper's tables and figures, and judge its claims.

    A verdict judges a claim of the paper (its sentence is quoted), a number of it, or a finding
    beyond it; the three kinds are counted separately. A claim that does not hold is a result, not
    an error: the status is 0 if all labels were computed, and 2 if one could not be.

    Each label writes LABEL.json, LABEL.md and its pictures. --quick takes minutes on two cores and
    uses the weights and training logs in the package; --full trains and samples as much as the
    paper. Finished parts are kept: run the same command again to continue. Real data come from the
    folder LLOYDFORMER_DATA, or from OpenML.

    --authors follows the authors' public code where it differs from the text, and writes
    LABEL-authors.json and so on next to the others.
    """
    labels = (AUTHORS if authors else LABELS) if label == "all" else (label,)
    if authors and label not in ("all", *AUTHORS):
        raise ValueError(
            f"--authors: found the label {label!r}, which has no protocol of the authors' own; "
            f"leave it out, or pass one of {', '.join(AUTHORS)}"
        )
    # Before torch is imported, so that a label that does not exist is refused at once.
    wanted = [load_artefact(f"{name}{BY_AUTHORS}" if authors else name) for name in labels]
    from lloydformer.paper.reproduce import PAGE, count_pieces, reproduce_all, write_page
    from lloydformer.paper.verdict_tables import summarise, verdict_tables
    from lloydformer.plots.axes import require_matplotlib

    scope = Scope(full, trials, device, seed, authors)
    try:
        require_matplotlib()  # before minutes of work: every label draws pictures
    except ImportError as error:
        raise ValueError(str(error)) from None
    check_writable(output / PAGE)
    words = "stopped: finished parts are kept; run the same command to continue"
    with progress("reproduce", count_pieces(wanted, scope), lambda done: words) as bar:
        results, failed = reproduce_all(wanted, scope, output, force, bar.step)
    if page and results:
        write_page(results, output)
    if json:
        print_json({"labels": results} if label == "all" else next(iter(results.values()), {}))
    else:
        all_verdicts: list[Verdict] = []
        for name, result in results.items():
            artefact = load_artefact(name)
            verdicts = artefact.verdicts(result)
            all_verdicts += verdicts
            # All tables of all labels would hide the verdicts.
            for table in artefact.tables(result) if label != "all" else []:
                print_table(table.columns, table.rows, title=table.caption)
                stdout.print()
            heading = f"{artefact.title} ({', '.join(artefact.cites)}): {summarise(verdicts)}"
            stdout.print(heading, soft_wrap=True)
            for table in verdict_tables(verdicts):
                print_records(table.columns, table.rows, table.caption)
            stdout.print()
        if len(results) > 1:
            stdout.print(f"all: {summarise(all_verdicts)}", soft_wrap=True)
    stderr.print(f"written: {output}{f' ({PAGE})' if page and results else ''}", soft_wrap=True)
    # A label that failed (no network, no data) does not keep the others from being written.
    for name, reason in failed.items():
        stderr.print(f"lloydformer: {name}: {reason}", soft_wrap=True)
    if failed:
        raise typer.Exit(2)
