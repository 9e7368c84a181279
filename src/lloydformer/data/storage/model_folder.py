"""Tensors with a JSON file that describes them; the two belong together at every moment.

Model folders hold config.json, and a safetensors file that it names. The tensors are written first,
to a file named by their hash; then config.json is replaced; then old tensors are removed. If the
process is killed at any point, config.json and the file that it names belong to the same model.
Writers hold the lock of the folder. Readers do not need it, unless a file is removed while they
read.

Learned layers are two files among others: NAME.json, a card with the hash of the weights, and
NAME.safetensors. New weights are first written under a temporary name that is made from their hash;
then the card is replaced; then the weights get their own name. So the weights of the card are
always under one of the two names.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.resources import as_file
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydformer.data.storage.atomic_files import (
    atomic_write,
    atomic_write_text,
    lock_folder,
    remove_stale,
)
from lloydformer.data.storage.bounded_read import (
    JSON_LIMIT,
    read_json,
    read_whole,
    tensor_limit,
)

if TYPE_CHECKING:
    import numpy as np

CONFIG = "config.json"
TENSORS = "model-*.safetensors"
# Version of the format; increased when older models cannot be read any more.
FORMAT = 1
_TENSORS = r"model-[0-9a-f]{16}\.safetensors"
# Names of tensor files, and of temporary files that a killed write has left. Early versions named
# these with `tempfile`, so that more than hexadecimal digits are possible.
_OURS = re.compile(rf"{_TENSORS}|\.({_TENSORS}|{re.escape(CONFIG)})\.[a-z0-9_]{{8}}")

Config = dict[str, Any]
Arrays = dict[str, "np.ndarray"]


def write_folder(folder: Path, config: Config, tensors: Arrays, *, force: bool) -> None:
    """Write a model; `force` replaces an existing one. Other files in the folder stay.

    Raises `ValueError` if the folder holds a model and `force` is False.
    """
    import numpy as np
    from safetensors.numpy import save

    data = save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    name = _name_of(data)
    whole = {"library": "lloydformer", "format": FORMAT, "tensors": name, **config}
    text = json.dumps(whole, indent=2, allow_nan=False) + "\n"
    if len(text) > JSON_LIMIT:
        raise ValueError(
            f"{folder}: found {len(text):,} characters of settings and names, more than are read; "
            "save a model with fewer or shorter names"
        )
    with _lock_new_folder(folder):
        if (folder / CONFIG).exists():
            if not force:
                raise ValueError(f"{folder}: holds a model already; pass force=True to replace it")
            try:  # a config.json of another program is not ours to replace
                _read_own_json(folder / CONFIG)
            except ValueError as error:
                raise ValueError(f"{error}; choose another folder, or remove that file") from None
        try:
            with atomic_write(folder / name) as file:
                file.write(data)
            atomic_write_text(folder / CONFIG, text)
        finally:
            # Also after an error: of the old and the new tensors, those that config.json does not
            # name are of no use.
            named = read_config(folder)["tensors"] if (folder / CONFIG).exists() else None
            for other in folder.iterdir():
                if _OURS.fullmatch(other.name) and other.name != named:
                    other.unlink(missing_ok=True)


@contextmanager
def _lock_new_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made; after an error a new folder is removed again."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; pass the name of a folder")
    new = not folder.exists()
    try:
        with lock_folder(folder, create=True):
            yield
    except BaseException:
        with suppress(OSError):  # it has files
            if new:
                folder.rmdir()
        raise


def read_folder(folder: Path) -> tuple[Config, Arrays]:
    """Read what `write_folder` wrote; raises `ValueError` if a file is missing or damaged."""
    while True:
        with suppress(FileNotFoundError):
            return _read_both(folder)
        # Another process has just replaced the model, or the file of tensors is missing. Writers
        # are locked out in the second attempt; if nothing changed in between, it is missing.
        before = _state(folder)
        with suppress(FileNotFoundError), lock_folder(folder):
            return _read_both(folder)
        if before == _state(folder):
            path = folder / read_config(folder)["tensors"]
            raise ValueError(f"{path}: there is no such file; save the model again")


def _state(folder: Path) -> tuple[int, int] | None:
    """Return a value that stays equal as long as no file in the folder is added or removed."""
    with suppress(FileNotFoundError):
        found = folder.stat()
        return found.st_ino, found.st_ctime_ns
    return None


def _read_both(folder: Path) -> tuple[Config, Arrays]:
    """Read config and tensors; raises `FileNotFoundError` if there are no such tensors."""
    config = read_config(folder)
    return config, _read_tensors(folder / config["tensors"])


def read_config(folder: Path) -> Config:
    """Read config.json, and check its format and the name of its tensors; imports little."""
    path = folder / CONFIG
    config = _read_own_json(path)
    if config.get("format") != FORMAT:
        raise ValueError(
            f"{path}: found format {config.get('format')!r}; this version of lloydformer reads "
            f"format {FORMAT}"
        )
    name = config.get("tensors")
    if not isinstance(name, str) or not re.fullmatch(_TENSORS, name):
        raise ValueError(f"{path}: found tensors {name!r}, which is not a name of a tensor file")
    return config


def _read_own_json(path: Path) -> Config:
    try:
        config = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path}: there is no such file; pass the folder of a model") from None
    if not isinstance(config, dict) or config.get("library") != "lloydformer":
        raise ValueError(f"{path}: is not a model of lloydformer")
    return config


def _read_tensors(path: Path) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_whole(path, tensor_limit())
    if _name_of(data) != path.name:
        raise ValueError(f"{path}: is damaged (its content does not match its name)")
    try:
        return {name: array.copy() for name, array in load(data).items()}
    except (SafetensorError, KeyError) as error:  # not a safetensors file; a dtype that NumPy lacks
        raise ValueError(f"{path}: is not a safetensors file ({error})") from None


def _name_of(data: bytes) -> str:
    return f"model-{sha256(data).hexdigest()[:16]}.safetensors"


def write_card_and_weights(path: Path, card: str, weights: bytes) -> None:
    """Write PATH.json and PATH.safetensors; the card holds the SHA-256 hash of the weights."""
    target, about = (path.with_name(f"{path.name}.{kind}") for kind in ("safetensors", "json"))
    digest = sha256(weights).hexdigest()
    waiting = path.with_name(_waiting_name(path.name, digest))
    with lock_folder(path.parent, create=True):
        try:
            if _read_or_nothing(waiting) != weights:  # a killed write may have left them
                with waiting.open("wb") as file:
                    file.write(weights)
                    file.flush()
                    os.fsync(file.fileno())
            atomic_write_text(about, card)
        except BaseException:
            # The new card may be there already: then it needs the weights that wait for it.
            needed = digest.encode() in _read_or_nothing(about)
            if not needed or _read_or_nothing(target) == weights:
                waiting.unlink(missing_ok=True)
            raise
        waiting.replace(target)
        remove_stale(target)


def _read_or_nothing(path: Path) -> bytes:
    """Return the bytes of a file; none if it cannot be read."""
    with suppress(OSError, ValueError):
        return read_whole(path, tensor_limit())
    return b""


def read_weights(folder: Traversable, name: str, digest: str) -> bytes | None:
    """Read the weights with this hash; None if there are none."""
    for file in (folder / f"{name}.safetensors", folder / _waiting_name(name, digest)):
        if not file.is_file():
            continue
        with suppress(FileNotFoundError), as_file(file) as path:  # it may just have been renamed
            data = read_whole(path, tensor_limit())
            if sha256(data).hexdigest() == digest:
                return data
    return None


def _waiting_name(name: str, digest: str) -> str:
    return f".{name}.safetensors.{digest[:8]}"
