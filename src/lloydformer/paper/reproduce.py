"""Make several tables and figures of the paper, and write their files."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.markdown import sheet
from lloydformer.paper.page import paper_page
from lloydformer.paper.run import make
from lloydformer.paper.scope import Scope
from lloydformer.storage.atomic import replacing, write_whole

PAGE = "paper.html"


def reproduce_all(
    wanted: Sequence[Artefact],
    scope: Scope,
    folder: Path,
    force: bool,
    after: Callable[[str], None] = lambda piece: None,
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Make each artefact, and write its JSON, its Markdown and its pictures to `folder`.

    Returns the results by label, and the reasons of labels that failed: missing data stop only
    the label that needs them. `after` is called after each piece of the work.
    """
    results: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for artefact in wanted:
        try:
            results[artefact.label] = make(artefact, scope, folder, force, after)
        except ValueError as error:
            failed[artefact.label] = " ".join(str(error).split())
            continue
        _write_files(artefact, results[artefact.label], folder)
    return results, failed


def count_pieces(wanted: Sequence[Artefact], scope: Scope) -> int:
    """The number of pieces that `reproduce_all` reports."""
    return sum(len(artefact.pieces(scope)) for artefact in wanted)


def write_page(results: dict[str, dict[str, Any]], folder: Path) -> None:
    """Write all results as one HTML page."""
    write_whole(folder / PAGE, paper_page(results))


def _write_files(artefact: Artefact, result: dict[str, Any], folder: Path) -> None:
    names = []
    for picture in artefact.pictures(result):
        names.append(f"{picture.name}.png")
        drawn = BytesIO()
        picture.figure.savefig(drawn, format="png", dpi=120)
        with replacing(folder / names[-1]) as file:
            file.write(drawn.getvalue())
    write_whole(folder / f"{artefact.label}.md", sheet(artefact, result, names))
