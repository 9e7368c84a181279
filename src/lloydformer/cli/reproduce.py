"""`lloydformer reproduce`: tables and figures of the paper made again, with verdicts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.terminal import Bar, print_json, print_table, progress, stderr, stdout
from lloydformer.paper.artefact import Artefact, Record
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.markdown import sheet
from lloydformer.paper.page import paper_page
from lloydformer.paper.run import make
from lloydformer.paper.scope import Scope
from lloydformer.paper.verdicts import summary, verdicts
from lloydformer.plots.axes import require_matplotlib
from lloydformer.storage.atomic import check_writable, replacing, write_whole


def reproduce(
    label: Annotated[str, typer.Argument(help=f"all, or one of {', '.join(LABELS)}.")] = "all",
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's own protocol, or minutes of it.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials or tasks of each setting.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where tensors are: cpu, cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = 0,
    page: Annotated[
        bool, typer.Option("--page", help="Also write paper.html, all in one.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that is written.")
    ] = Path("paper-again"),
    force: Annotated[bool, typer.Option("--force", help="Make anew what is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make tables and figures of the paper again, and judge what it claims of them.

    Each label writes LABEL.json, LABEL.md and its pictures. --quick takes minutes on two cores,
    from the weights and training logs in the package; --full trains and draws as much as the paper.
    What was made before is kept: run the same command again to go on. Real data come from the
    folder LLOYDFORMER_DATA, or from OpenML.
    """
    wanted = [artefact(name) for name in (LABELS if label == "all" else [label])]
    scope = Scope(full, trials, device, seed)
    _require_pictures()
    check_writable(output / "paper.html")
    results, lost = _made(wanted, scope, output, force)
    if page and results:
        write_whole(output / "paper.html", paper_page(results))
    _show(results, label == "all", json)
    stderr.print(f"written: {output}{' (paper.html)' if page and results else ''}", soft_wrap=True)
    for name, reason in lost.items():
        stderr.print(f"lloydformer: {name}: {reason}", markup=False, soft_wrap=True)
    if lost:
        raise typer.Exit(2)


def _made(
    wanted: Sequence[Artefact], scope: Scope, folder: Path, force: bool
) -> tuple[dict[str, Record], dict[str, str]]:
    """Results by label, and why others have none: data that are not there stop their label only."""
    results: dict[str, Record] = {}
    lost: dict[str, str] = {}
    with _counted(wanted, scope) as bar:
        for of in wanted:
            try:
                results[of.label] = make(of, scope, folder, force, bar.advance)
            except ValueError as error:
                lost[of.label] = " ".join(str(error).split())
                continue
            _write(of, results[of.label], folder)
    return results, lost


@contextmanager
def _counted(wanted: Sequence[Artefact], scope: Scope) -> Iterator[Bar]:
    """A bar of all pieces; who ends it hears what is kept."""
    total = sum(len(of.pieces(scope)) for of in wanted)
    with progress("reproduce", total) as bar:
        try:
            yield bar
        except KeyboardInterrupt:
            stderr.print("stopped: what is done is kept; the same command goes on from there")
            raise


def _write(of: Artefact, result: Record, folder: Path) -> None:
    names = []
    for picture in of.pictures(result):
        names.append(f"{picture.name}.png")
        drawn = BytesIO()
        picture.figure.savefig(drawn, format="png", dpi=120)
        with replacing(folder / names[-1]) as file:
            file.write(drawn.getvalue())
    write_whole(folder / f"{of.label}.md", sheet(of, result, names))


def _show(results: dict[str, Record], several: bool, json: bool) -> None:
    if json:
        return print_json({"labels": results} if several else next(iter(results.values()), {}))
    for name, result in results.items():
        of = artefact(name)
        claims = of.claims(result)
        for table in [] if several else of.tables(result):
            print_table(table.columns, table.rows, title=table.caption)
            stdout.print()
        found = verdicts(claims)
        heading = f"{of.title} ({', '.join(of.cites)}): {summary(claims)}"
        print_table(found.columns[:-1], [row[:-1] for row in found.rows], heading, found.columns[0])
        for claim in claims:
            if claim.note:
                stdout.print(f"  {claim.note}", markup=False, soft_wrap=True)
        stdout.print()
    return None


def _require_pictures() -> None:
    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(str(error)) from None
