"""Reproduce a label: run its pieces, save each when it ends, and combine them into a result."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from lloydformer.jobs.bench.provenance import provenance
from lloydformer.paper.artefact import Artefact, Piece, Record
from lloydformer.paper.scope import Scope
from lloydformer.paper.verdict_tables import summary
from lloydformer.storage.atomic import write_whole
from lloydformer.storage.bounded_read import read_json

PIECES = "pieces"
"""The folder of saved pieces, until they are combined."""


def load_result(folder: Path, label: str) -> Record | None:
    """The saved result of a label; None if there is none, or if its run did not finish."""
    return _read(folder / f"{label}.json")


def make(
    artefact: Artefact,
    scope: Scope,
    folder: Path,
    force: bool = False,
    done: Callable[[str], None] = lambda what: None,
) -> Record:
    """Run the pieces that are not saved yet, and write the result to LABEL.json.

    An interrupted run continues after its last saved piece, and a saved result is only judged
    again, by the current code. `force` runs everything again; `done`
    is called with a description after each piece. Raises ValueError if the saved result or a piece
    belongs to another scope.
    """
    path, saved = folder / f"{artefact.label}.json", folder / PIECES / artefact.label
    if force:
        shutil.rmtree(saved, ignore_errors=True)
    elif (earlier := _read_for_scope(path, scope)) is not None:
        return _save(path, with_verdicts(artefact, earlier))
    found: dict[str, Record] = {}
    for name, piece in artefact.pieces(scope).items():
        file = saved / f"{name}.json"
        found[name] = _read_for_scope(file, scope) or _run(piece, scope, file)
        done(f"{artefact.label}: {name}")
    result = _save(path, _result(artefact, scope, found))
    shutil.rmtree(saved, ignore_errors=True)
    return result


def with_verdicts(artefact: Artefact, result: Record) -> Record:
    """The result with its verdicts and their summary, by the current code."""
    verdicts = artefact.verdicts(result)
    written = [verdict.written() for verdict in verdicts]
    return {**result, "summary": summary(verdicts), "verdicts": written}


def _result(artefact: Artefact, scope: Scope, found: dict[str, Record]) -> Record:
    head = {
        "label": artefact.label, "cites": list(artefact.cites), "title": artefact.title,
        "scope": scope.written(), "seconds": sum(one["seconds"] for one in found.values()),
        "provenance": provenance(),
    }  # fmt: skip
    body = artefact.result({name: one["found"] for name, one in found.items()})
    return with_verdicts(artefact, {**head, **body})


def _run(piece: Piece, scope: Scope, path: Path) -> Record:
    began = perf_counter()
    found = piece()
    seconds = perf_counter() - began
    return _save(path, {"found": found, "scope": scope.written(), "seconds": seconds})


def _read_for_scope(path: Path, scope: Scope) -> Record | None:
    found = _read(path)
    if found is not None and found.get("scope") != scope.written():
        raise ValueError(
            f"{path} was made with other settings ({found.get('scope')}); pass --force to make it "
            "again, or --output for another folder"
        )
    return found


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    try:
        found: Record = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; pass --force to make it again") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: is not a result; pass --force to make it again")
    return found


def _save(path: Path, found: Record) -> Record:
    """Write as JSON; returns it as read back, so that types are the same in a later run."""
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    write_whole(path, text)
    again: Record = json.loads(text)
    return again
