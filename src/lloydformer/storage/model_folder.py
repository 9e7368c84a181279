"""A folder that holds a model: config.json, and the tensors that it names by their content.

Tensors are written first, under a name made of their content; then config.json is replaced; then
the tensors before are removed. Whenever that is cut short, config.json and the tensors that it
names are those of one model.
"""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lloydformer.storage.atomic import replacing, write_whole

CONFIG = "config.json"
FORMAT = 1
"""Rises when a model written before cannot be read as it is."""
_TENSORS = r"model-[0-9a-f]{16}\.safetensors"
_OURS = re.compile(rf"{_TENSORS}|\.({_TENSORS}|{re.escape(CONFIG)})\.[a-z0-9_]{{8}}")
"""Tensors, and files beside them that a write cut short has left."""

Config = dict[str, Any]
Arrays = dict[str, np.ndarray]


def write_folder(folder: Path, config: Config, tensors: Arrays, *, force: bool) -> None:
    """The model, in place of the one that is there if `force`; other files are left alone."""
    _refuse_what_is_there(folder, force)
    data = save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    name = _name_of(data)
    with replacing(folder / name) as file:
        file.write(data)
    whole = {"library": "lloydformer", "format": FORMAT, "tensors": name, **config}
    write_whole(folder / CONFIG, json.dumps(whole, indent=2, allow_nan=False) + "\n")
    for other in folder.iterdir():
        if _OURS.fullmatch(other.name) and other.name != name:
            other.unlink(missing_ok=True)


def read_folder(folder: Path) -> tuple[Config, Arrays]:
    """What `write_folder` was given; a folder that is not whole is a `ValueError`."""
    config = _read_config(folder)
    while True:
        try:
            return config, _read_tensors(folder / config["tensors"])
        except FileNotFoundError:
            newer = _read_config(folder)  # another process may have replaced the model just now
            if newer == config:
                path = folder / config["tensors"]
                raise ValueError(f"{path}: there is no such file; save the model again") from None
            config = newer


def _refuse_what_is_there(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; pass the name of a folder")
    path = folder / CONFIG
    if not path.exists():
        return
    if not force:
        raise ValueError(f"{folder}: holds a model already; pass force=True to replace it")
    try:
        _read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; choose another folder, or remove that file") from None


def _read_config(folder: Path) -> Config:
    """config.json with the entries of its frame checked."""
    path = folder / CONFIG
    config = _read_json(path)
    if config.get("format") != FORMAT:
        raise ValueError(
            f"{path}: found format {config.get('format')!r}; this version of lloydformer reads "
            f"format {FORMAT}"
        )
    name = config.get("tensors")
    if not isinstance(name, str) or not re.fullmatch(_TENSORS, name):
        raise ValueError(f"{path}: found tensors {name!r}, which is no name of a file of tensors")
    return config


def _read_json(path: Path) -> Config:
    try:
        config = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path}: there is no such file; pass the folder of a model") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: is not JSON ({error})") from None
    if not isinstance(config, dict) or config.get("library") != "lloydformer":
        raise ValueError(f"{path}: is not of a model of lloydformer")
    return config


def _read_tensors(path: Path) -> Arrays:
    data = path.read_bytes()
    if _name_of(data) != path.name:
        raise ValueError(f"{path}: is not whole (its content is not what its name says)")
    try:
        return {name: array.copy() for name, array in load(data).items()}
    except (SafetensorError, KeyError) as error:  # what a file is not; a type that NumPy lacks
        raise ValueError(f"{path}: is not a file of tensors ({error})") from None


def _name_of(data: bytes) -> str:
    return f"model-{sha256(data).hexdigest()[:16]}.safetensors"
