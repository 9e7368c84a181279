"""Circuits in one file: weights as safetensors, the recipe as JSON in its header.

Nothing in a file is executed. A part of your own is written as its import path, and imported only
if the reader names this path.
"""

import json
import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.numerics.checks import check_count

# Key of the header, and the version of its contents.
_KEY, _VERSION = "lloydformer.circuit", 1
_FIELDS = ("version", "recipes", "n_features", "n_clusters", "trainable", "as_printed")


def write_circuit(
    circuit: nn.Module, given: Mapping[str, Any], path: str | os.PathLike[str]
) -> None:
    """Write weights and the arguments of the constructor; the file is whole at any time."""
    target = Path(path)
    if target.suffix != ".safetensors":
        raise ValueError(f"path: found {str(path)!r}; use a name that ends in .safetensors")
    recipes = [serialise(recipe, own=True) for recipe in given["recipes"]]
    header = {**given, "version": _VERSION, "recipes": recipes}
    weights = {name: w.detach().contiguous().clone() for name, w in circuit.state_dict().items()}
    beside = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        save_file(weights, beside, {_KEY: json.dumps(header, allow_nan=False)})
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def read_circuit(
    path: str | os.PathLike[str], allow: Collection[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the arguments of the constructor, with parts in place of JSON, and the weights."""
    if isinstance(allow, str):
        raise ValueError(f"allow: found the text {allow!r}; pass a tuple of import paths")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(_KEY)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"path: {os.fspath(path)!r} is not a safetensors file ({error})") from None
    if header is None:
        raise ValueError(
            f"path: {os.fspath(path)!r} has weights but no circuit; pass a file of Circuit.save"
        )
    try:
        found = json.loads(header)
    except json.JSONDecodeError as error:
        raise ValueError(f"path: the header of {os.fspath(path)!r} is no JSON ({error})") from None
    if not isinstance(found, dict) or set(found) != set(_FIELDS) or found["version"] != _VERSION:
        raise ValueError(
            f"path: the header of {os.fspath(path)!r} is not one of version {_VERSION} with fields "
            f"{', '.join(_FIELDS)}; write the circuit with this version of lloydformer"
        )
    given = {name: found[name] for name in _FIELDS if name != "version"}
    if not isinstance(given["recipes"], list):
        raise ValueError(f"path: found recipes {given['recipes']!r}; expected a list")
    given["recipes"] = [deserialise(recipe, allow) for recipe in given["recipes"]]
    for name in ("n_features", "n_clusters"):
        check_count(name, given[name])
    for name in ("trainable", "as_printed"):
        if not isinstance(given[name], bool):
            raise ValueError(f"path: found {name} {given[name]!r}; expected true or false")
    return given, weights


def fill_weights(circuit: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Replace the weights of a new circuit; raise ValueError if names or shapes differ."""
    expected = {name: tuple(w.shape) for name, w in circuit.state_dict().items()}
    found = {name: tuple(w.shape) for name, w in weights.items()}
    if wrong := {*expected.items()} ^ {*found.items()}:
        name = sorted(wrong)[0][0]
        raise ValueError(
            f"path: weight {name!r} has shape {found.get(name)} in the file and "
            f"{expected.get(name)} in a circuit of this recipe"
        )
    # assigned, so that the precision is that of the file
    circuit.load_state_dict(dict(weights), strict=True, assign=True)


def make_quietly(kind: type[Any], **given: Any) -> Any:
    """Return a circuit of these arguments, without the warning that its maker has had already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoGradientWarning)
        return kind(**given)
