"""Making a label again: piece by piece, kept as they are done, put together at the end."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from lloydformer.jobs.bench.provenance import provenance
from lloydformer.paper.artefact import Artefact, Found, Piece
from lloydformer.paper.scope import Scope
from lloydformer.storage.atomic import write_whole

PIECES = "pieces"
"""The folder of what is not put together yet."""


def made(folder: Path, label: str) -> Found | None:
    """What an earlier run left under a label, if it came to its end."""
    return _read(folder / f"{label}.json")


def make(
    artefact: Artefact,
    scope: Scope,
    folder: Path,
    force: bool = False,
    done: Callable[[str], None] = lambda what: None,
) -> Found:
    """Run the pieces that are not there yet, and write LABEL.json in place of them.

    A run that ends between two pieces goes on from there when it is started again.
    """
    path, kept = folder / f"{artefact.label}.json", folder / PIECES / artefact.label
    if force:
        shutil.rmtree(kept, ignore_errors=True)
    elif (earlier := _of_scope(path, scope)) is not None:
        return earlier
    found: dict[str, Found] = {}
    for name, piece in artefact.pieces(scope).items():
        found[name] = _of_scope(kept / f"{name}.json", scope) or _run(piece, scope, kept / name)
        done(f"{artefact.label}: {name}")
    result = _written(path, _result(artefact, scope, found))
    shutil.rmtree(kept, ignore_errors=True)
    return result


def judged(artefact: Artefact, result: Found) -> Found:
    """The result with the verdicts that the artefact gives it now."""
    return {**result, "claims": [claim.written() for claim in artefact.claims(result)]}


def _result(artefact: Artefact, scope: Scope, found: dict[str, Found]) -> Found:
    head = {
        "label": artefact.label, "cites": list(artefact.cites), "title": artefact.title,
        "scope": scope.written(), "seconds": sum(one["seconds"] for one in found.values()),
        "provenance": provenance(),
    }  # fmt: skip
    return judged(artefact, {**head, **artefact.result({n: f["found"] for n, f in found.items()})})


def _run(piece: Piece, scope: Scope, path: Path) -> Found:
    began = perf_counter()
    found = piece()
    seconds = perf_counter() - began
    whole = {"found": found, "scope": scope.written(), "seconds": seconds}
    return _written(path.with_name(f"{path.name}.json"), whole)


def _of_scope(path: Path, scope: Scope) -> Found | None:
    found = _read(path)
    if found is not None and found.get("scope") != scope.written():
        raise ValueError(
            f"{path} was made with other settings ({found.get('scope')}); pass --force to make it "
            "anew, or --output for another folder"
        )
    return found


def _read(path: Path) -> Found | None:
    if not path.exists():
        return None
    try:
        found: Found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); pass --force to make it anew") from None
    return found


def _written(path: Path, found: Found) -> Found:
    """As it is read again: the same types, whether it was kept or not."""
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    write_whole(path, text)
    again: Found = json.loads(text)
    return again
