"""Model folders: config.json, and a safetensors file that it names.

The tensors are written first, to a file named by their hash; then config.json is replaced; then
old tensors are removed. If the process is killed at any point, config.json and the file that it
names belong to the same model. Writers hold the lock of the folder. Readers do not need it, unless
a file is removed while they read.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydformer.storage.atomic import replacing, write_whole
from lloydformer.storage.bounded_read import JSON_LIMIT, read_bounded, read_json, tensor_limit
from lloydformer.storage.locks import locked

if TYPE_CHECKING:
    import numpy as np

CONFIG = "config.json"
TENSORS = "model-*.safetensors"
FORMAT = 1
"""Version of the format; increased when older models cannot be read any more."""
_TENSORS = r"model-[0-9a-f]{16}\.safetensors"
_OURS = re.compile(rf"{_TENSORS}|\.({_TENSORS}|{re.escape(CONFIG)})\.[a-z0-9_]{{8}}")
"""Names of tensor files, and of temporary files that a killed write has left."""

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
        raise ValueError(f"{folder}: found {len(text):,} characters of settings and names, more "
                         f"than are read; save a model with fewer or shorter names")  # fmt: skip
    with _locked_folder(folder):
        _check_target(folder, force)
        try:
            with replacing(folder / name) as file:
                file.write(data)
            write_whole(folder / CONFIG, text)
        finally:
            _keep_only_named(folder)


def _keep_only_named(folder: Path) -> None:
    """Remove tensors and temporary files, except for the tensors that config.json names."""
    named = read_config(folder)["tensors"] if (folder / CONFIG).exists() else None
    for other in folder.iterdir():
        if _OURS.fullmatch(other.name) and other.name != named:
            other.unlink(missing_ok=True)


def read_folder(folder: Path) -> tuple[Config, Arrays]:
    """Read what `write_folder` wrote; raises `ValueError` if a file is missing or damaged."""
    while True:
        with suppress(FileNotFoundError):
            return _read_both(folder)
        before = _state(folder)  # another process has just replaced the model, or a file is missing
        with suppress(FileNotFoundError), locked(folder, shared=True):
            return _read_both(folder)
        if before == _state(folder):
            path = folder / read_config(folder)["tensors"]
            raise ValueError(f"{path}: there is no such file; save the model again")


def _state(folder: Path) -> tuple[int, int] | None:
    """Equal as long as the folder is the same one and no file in it is added or removed."""
    with suppress(FileNotFoundError):
        found = folder.stat()
        return found.st_ino, found.st_ctime_ns
    return None


def _read_both(folder: Path) -> tuple[Config, Arrays]:
    """Raises `FileNotFoundError` if the tensors that config.json names are not there."""
    config = read_config(folder)
    return config, _read_tensors(folder / config["tensors"])


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made; after an error a new folder is removed again."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; pass the name of a folder")
    new = not folder.exists()
    try:
        with locked(folder, create=True):
            yield
    except BaseException:
        with suppress(OSError):  # it has files
            if new:
                folder.rmdir()
        raise


def _check_target(folder: Path, force: bool) -> None:
    path = folder / CONFIG
    if not path.exists():
        return
    if not force:
        raise ValueError(f"{folder}: holds a model already; pass force=True to replace it")
    try:
        _read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; choose another folder, or remove that file") from None


def read_config(folder: Path) -> Config:
    """Read config.json, and check its format and the name of its tensors; imports little."""
    path = folder / CONFIG
    config = _read_json(path)
    if config.get("format") != FORMAT:
        raise ValueError(
            f"{path}: found format {config.get('format')!r}; this version of lloydformer reads "
            f"format {FORMAT}"
        )
    name = config.get("tensors")
    if not isinstance(name, str) or not re.fullmatch(_TENSORS, name):
        raise ValueError(f"{path}: found tensors {name!r}, which is not a name of a tensor file")
    return config


def _read_json(path: Path) -> Config:
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

    data = read_bounded(path, tensor_limit())
    if _name_of(data) != path.name:
        raise ValueError(f"{path}: is damaged (its content does not match its name)")
    try:
        return {name: array.copy() for name, array in load(data).items()}
    except (SafetensorError, KeyError) as error:  # not a safetensors file; a dtype that NumPy lacks
        raise ValueError(f"{path}: is not a safetensors file ({error})") from None


def _name_of(data: bytes) -> str:
    return f"model-{sha256(data).hexdigest()[:16]}.safetensors"
