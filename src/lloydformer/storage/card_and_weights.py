"""Two files that belong together: NAME.json, a card, and NAME.safetensors, whose hash is in it.

New weights are first written under a hidden name that is made from their hash; then the card is
replaced; then the weights get their own name. If the process is killed at any point, the card is
the old one or the new one, and its weights are under one of the two names.
"""

import os
from contextlib import suppress
from hashlib import sha256
from importlib.resources import as_file
from importlib.resources.abc import Traversable
from pathlib import Path

from lloydformer.storage.atomic import sweep_hidden, write_whole
from lloydformer.storage.bounded_read import read_bounded, tensor_limit
from lloydformer.storage.locks import locked


def write_card_and_weights(path: Path, card: str, weights: bytes) -> None:
    """Write PATH.json and PATH.safetensors; the card holds the SHA-256 hash of the weights."""
    goal, about = (path.with_name(f"{path.name}.{kind}") for kind in ("safetensors", "json"))
    digest = sha256(weights).hexdigest()
    waiting = path.with_name(_waiting(path.name, digest))
    with locked(path.parent, create=True):
        try:
            if _content(waiting) != weights:  # a killed write may have left them for its card
                _write(waiting, weights)
            write_whole(about, card)
        except BaseException:
            needed = digest.encode() in _content(about) and _content(goal) != weights
            if not needed:
                waiting.unlink(missing_ok=True)
            raise
        waiting.replace(goal)
        sweep_hidden(goal)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _content(path: Path) -> bytes:
    """The bytes of a file; none if it cannot be read."""
    with suppress(OSError, ValueError):
        return read_bounded(path, tensor_limit())
    return b""


def read_weights(folder: Traversable, name: str, digest: str) -> bytes | None:
    """Read the weights with this hash; None if there are none."""
    for file in (folder / f"{name}.safetensors", folder / _waiting(name, digest)):
        if not file.is_file():
            continue
        with suppress(FileNotFoundError), as_file(file) as path:  # it may just have been renamed
            data = read_bounded(path, tensor_limit())
            if sha256(data).hexdigest() == digest:
                return data
    return None


def _waiting(name: str, digest: str) -> str:
    return f".{name}.safetensors.{digest[:8]}"
