"""Reproduce labels: run their pieces, resume after an interruption, judge, and write the files.

Each piece is saved in FOLDER/pieces/LABEL when it ends. When all are done they are combined into
FOLDER/LABEL.json, and the pieces are removed.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from time import perf_counter

from lloydformer.data.storage.atomic_files import atomic_write, atomic_write_text
from lloydformer.data.storage.bounded_read import read_json
from lloydformer.paper.artefact import Artefact, Record, Scope
from lloydformer.paper.pages import format_sheet, paper_page
from lloydformer.paper.provenance import provenance
from lloydformer.paper.verdict_tables import summarise

PIECES = "pieces"
PAGE = "paper.html"


def reproduce_all(
    artefacts: Sequence[Artefact],
    scope: Scope,
    folder: Path,
    force: bool,
    callback: Callable[[str], None] = lambda piece: None,
) -> tuple[dict[str, Record], dict[str, str]]:
    """Reproduce each artefact, and write its JSON, its Markdown and its pictures to `folder`.

    Returns the results by label (by LABEL-authors if the scope says so), and the reasons of labels
    that failed: missing data stop only the label that needs them.
    `callback` is called after each piece of the work.
    """
    results: dict[str, Record] = {}
    failed: dict[str, str] = {}
    for artefact in artefacts:
        try:
            result = reproduce_label(artefact, scope, folder, force, callback)
        except ValueError as error:  # data that cannot be had; other errors are defects
            failed[artefact.label] = " ".join(str(error).split())
            continue
        results[scope.name_of(artefact.label)] = result
        names = []
        for picture in artefact.pictures(result):
            names.append(f"{scope.name_of(picture.name)}.png")
            png = BytesIO()  # drawn in memory: a file is written whole or not at all
            picture.figure.savefig(png, format="png", dpi=120)
            with atomic_write(folder / names[-1]) as file:
                file.write(png.getvalue())
        sheet = folder / f"{scope.name_of(artefact.label)}.md"
        atomic_write_text(sheet, format_sheet(artefact, result, names))
    return results, failed


def count_pieces(artefacts: Sequence[Artefact], scope: Scope) -> int:
    """Return the number of pieces that `reproduce_all` reports."""
    return sum(len(artefact.pieces(scope)) for artefact in artefacts)


def write_page(results: Mapping[str, Record], folder: Path) -> None:
    """Write all results as one HTML page."""
    atomic_write_text(folder / PAGE, paper_page(results))


def reproduce_label(
    artefact: Artefact,
    scope: Scope,
    folder: Path,
    force: bool = False,
    callback: Callable[[str], None] = lambda piece: None,
) -> Record:
    """Run the pieces of a label that are not saved yet, and write its result to LABEL.json.

    An interrupted run continues after its last saved piece, and a saved result is only judged
    again, by the current code. `force` runs everything again; `callback` is called with a
    description after each piece. Raises ValueError if the saved result or a piece belongs to
    another scope.
    """
    name_of_files = scope.name_of(artefact.label)
    path, saved = folder / f"{name_of_files}.json", folder / PIECES / name_of_files
    # `force` leaves an earlier LABEL.json in place until the new one is complete
    if force:
        shutil.rmtree(saved, ignore_errors=True)
    elif (earlier := _read_for_scope(path, scope)) is not None:
        return _save(path, add_verdicts(artefact, earlier))
    outputs: dict[str, Record] = {}
    seconds = 0.0
    for name, piece in artefact.pieces(scope).items():
        file = saved / f"{name}.json"
        record = _read_for_scope(file, scope)
        if record is None:
            began = perf_counter()
            output = piece()
            record = {"found": output, "scope": scope.as_dict(), "seconds": perf_counter() - began}
            record = _save(file, record)
        outputs[name] = record["found"]
        seconds += record["seconds"]
        callback(f"{artefact.label}: {name}")
    head = {
        "label": artefact.label,
        "cites": list(artefact.cites),
        "title": artefact.title,
        "scope": scope.as_dict(),
        "seconds": seconds,
        "provenance": provenance(),
    }
    result = _save(path, add_verdicts(artefact, {**head, **artefact.combine(outputs)}))
    # only now: until the result is written, an interrupted run needs its pieces
    shutil.rmtree(saved, ignore_errors=True)
    return result


def load_result(folder: Path, label: str) -> Record | None:
    """Return the saved result of a label, or of LABEL-authors; None if none is complete."""
    return _read(folder / f"{label}.json")


def add_verdicts(artefact: Artefact, result: Record) -> Record:
    """Return the result with its verdicts and their summary, by the current code."""
    verdicts = artefact.verdicts(result)
    listed = [verdict.as_dict() for verdict in verdicts]
    return {**result, "summary": summarise(verdicts), "verdicts": listed}


def _read_for_scope(path: Path, scope: Scope) -> Record | None:
    """Return a saved record, None if there is none; raise ValueError if its scope is another."""
    record = _read(path)
    if record is not None and record.get("scope") != scope.as_dict():
        raise ValueError(
            f"{path} was made with other settings ({record.get('scope')}); pass --force to "
            "recompute it, or --output for another folder"
        )
    return record


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    try:
        record: Record = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; pass --force to recompute it") from None
    if not isinstance(record, dict):
        raise ValueError(f"{path}: is not a result; pass --force to recompute it")
    return record


def _save(path: Path, record: Record) -> Record:
    """Write a record as JSON; return it as read back, so that types equal those of a later run."""
    # NaN is no JSON: it would be written here and refused by the reader of a later run
    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    atomic_write_text(path, text)
    again: Record = json.loads(text)
    return again
