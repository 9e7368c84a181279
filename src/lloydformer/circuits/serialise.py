"""Serialise recipes and their parts to JSON values, and back."""

import math
import sys
from collections.abc import Collection
from dataclasses import Field, fields, is_dataclass
from importlib import import_module
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lloydformer.circuits.activations import dense, hard, sparse, straight_through, transport
from lloydformer.circuits.feedforward import Difference, Perceptron, Product, Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.missing import CoordinateMeans, MaskedTokens
from lloydformer.circuits.mixture import MixtureKind, MixtureTokens, NaturalParameters
from lloydformer.circuits.norms import BlockArgmax, LayerNorm, RMSNorm
from lloydformer.circuits.projections import Average, Block, Dense, Number, Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.stages import Counts, PairedCounts, Read, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import Subspace
from lloydformer.circuits.symmetric import Fixed
from lloydformer.circuits.tokens import Binary, OneHot, Tokens

_KINDS: tuple[type[Any], ...] = (
    *(Recipe, Tokens, OneHot, Binary, Subspace),
    *(Head, Projection, Block, Average, Number, Dense, Euclidean, DotProduct, Scaled),
    *(RMSNorm, LayerNorm, Quadratic, Perceptron, Product, Difference, Fixed),
    *(Staged, Sublayer, Stage, Read, Counts, PairedCounts),
    *(MixtureKind, MixtureTokens, NaturalParameters),
    *(MaskedTokens, CoordinateMeans, BlockArgmax),
    # every activation that these modules define: a new one need not be listed
    *(
        kind
        for module in (dense, hard, sparse, straight_through, transport)
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    ),
)
# Parts that can be serialised, by class name. A user's own part is code and cannot be.
PARTS = {kind.__name__: kind for kind in _KINDS}
# The types of the fields of each part.
_HINTS = {name: get_type_hints(kind) for name, kind in PARTS.items()}


def serialise(part: Any, own: bool = False) -> Any:
    """Return a part as {"part": class name, **fields}; numbers, texts and None unchanged.

    own: also write parts that are not of this package, as {"import": "module:Class", **fields}.
    They must be dataclasses that can be imported.
    """
    if type(part) in _KINDS:
        names = _field_names(type(part)) + [
            f.name for f in later_fields(part) if getattr(part, f.name) != f.default
        ]
        values = {name: serialise(getattr(part, name), own) for name in names}
        return {"part": type(part).__name__, **values}
    if own and is_dataclass(part) and not isinstance(part, type):
        path = _import_path(type(part))
        values = {field.name: serialise(getattr(part, field.name), own) for field in fields(part)}
        return {"import": path, **values}
    if isinstance(part, tuple):
        return [serialise(value, own) for value in part]
    if part is None or isinstance(part, bool | str):
        return part
    # numbers of NumPy become those of Python; JSON has no infinity
    if isinstance(part, Integral):
        return int(part)
    if isinstance(part, Real) and math.isfinite(part):
        return float(part)
    raise ValueError(f"found {part!r}, which is not a part of lloydformer and cannot be serialised")


def _field_names(kind: type[Any]) -> list[str]:
    """Return the names of the fields that are always written.

    `Recipe.stated`, without a repr, is not, and `later_fields` are only if they are set.
    """
    return [field.name for field in fields(kind) if field.repr and not field.metadata.get("later")]


def later_fields(kind: Any) -> list[Field[Any]]:
    """Return the fields that were added after recipes had been written to files.

    They are left out where they have their default, so that those files and new ones are alike.
    """
    return [field for field in fields(kind) if field.metadata.get("later")]


def _import_path(kind: type[Any]) -> str:
    """Return "module:Class" of a part of one's own; raise ValueError if it cannot be imported."""
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise ValueError(
            f"found {kind.__qualname__} of {kind.__module__}, which a reader cannot import; define "
            "it at the top of a module"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def deserialise(found: Any, allow: Collection[str] = ()) -> Any:
    """Return the part that `serialise` was given; raise ValueError if the fields do not fit.

    allow: import paths of parts that are not of this package. Others are not imported.
    """
    if isinstance(found, list):
        return tuple(deserialise(value, allow) for value in found)
    if not isinstance(found, dict):
        return found
    if "import" in found and "part" not in found:
        return _own_part(found, allow)
    kind = PARTS.get(str(found.get("part")))
    if kind is None:
        raise ValueError(f"found part {found.get('part')!r}; known parts are {', '.join(PARTS)}")
    values = {name: deserialise(value, allow) for name, value in found.items() if name != "part"}
    expected, hints = _field_names(kind), _HINTS[kind.__name__]
    if values.keys() - {field.name for field in later_fields(kind)} != set(expected):
        raise ValueError(f"{kind.__name__}: found fields {sorted(values)}; expected {expected}")
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(
                f"{kind.__name__}: found {name} {value!r}; expected a value of type {hints[name]}"
            )
        # JSON writes 1.0 as 1 in some languages
        if type(value) is int and (hints[name] is float or float in get_args(hints[name])):
            values[name] = float(value)
    return kind(**values)


def _own_part(found: dict[str, Any], allow: Collection[str]) -> Any:
    """Import a part that is allowed, and make it."""
    path = found["import"]
    if path not in allow:
        raise ValueError(
            f"found a part of {path!r}, which is code of another package; if you trust it, pass "
            f"allow=({path!r},)"
        )
    module, _, name = str(path).partition(":")
    kind = getattr(import_module(module), name, None)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise ValueError(f"found a part of {path!r}, which is not a dataclass")
    values = {name: deserialise(value, allow) for name, value in found.items() if name != "import"}
    expected = [field.name for field in fields(kind)]
    if values.keys() != set(expected):
        raise ValueError(f"{path}: found fields {sorted(values)}; expected {expected}")
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether the value is of this type; an integer is a valid float."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, hint) for hint in inner)
    if kind is Literal:
        return value in inner
    if kind is tuple:
        if not isinstance(value, tuple):
            return False
        inner = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if hint is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))
