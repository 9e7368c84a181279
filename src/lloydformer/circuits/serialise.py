"""Serialise recipes and their parts to JSON values, and back."""

import math
import sys
from dataclasses import fields, is_dataclass
from importlib import import_module
from numbers import Integral, Real
from pkgutil import iter_modules
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lloydformer.circuits import activations
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.products import Difference, Product
from lloydformer.circuits.projections import Average, Block, Dense, Number, Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.stages import Counts, PairedCounts, Read, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import Subspace
from lloydformer.circuits.symmetric import Fixed
from lloydformer.circuits.tokens import Binary, OneHot, Tokens


def _activations() -> tuple[type[Any], ...]:
    """The dataclasses in the modules of the activations, except what a head tells them."""
    modules = (
        import_module(f"{activations.__name__}.{found.name}")
        for found in iter_modules(activations.__path__)
    )
    classes = (
        kind for module in modules for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    )  # fmt: skip
    return tuple(kind for kind in classes if kind is not activations.Context)


_KINDS: tuple[type[Any], ...] = (
    Recipe, Tokens, OneHot, Binary, Subspace, Head, Projection, Block, Average, Number, Dense,
    Euclidean, DotProduct, Scaled, RMSNorm, LayerNorm, Quadratic, Product, Difference, Fixed,
    Staged, Sublayer, Stage, Read, Counts, PairedCounts, *_activations(),
)  # fmt: skip
PARTS = {kind.__name__: kind for kind in _KINDS}
"""Parts that can be serialised, by class name. A user's own part is code and cannot be."""
_HINTS = {name: get_type_hints(kind) for name, kind in PARTS.items()}
"""The types of the fields of each part."""


def serialise(part: Any) -> Any:
    """Return a part as {"part": class name, **fields}; numbers, texts and None unchanged."""
    if type(part) in _KINDS:
        values = {name: serialise(getattr(part, name)) for name in _serialised(type(part))}
        return {"part": type(part).__name__, **values}
    if isinstance(part, tuple):
        return [serialise(one) for one in part]
    if part is None or isinstance(part, bool | str):
        return part
    if isinstance(part, Integral):
        return int(part)
    if isinstance(part, Real) and math.isfinite(part):
        return float(part)
    raise ValueError(f"found {part!r}, which is not a part of lloydformer and cannot be serialised")


def _serialised(kind: type[Any]) -> list[str]:
    """Return the names of the fields that are written: not what a recipe remembers of its maker."""
    return [field.name for field in fields(kind) if field.repr]


def deserialise(found: Any) -> Any:
    """Return the part that `serialise` was given; raise ValueError if the fields do not fit."""
    if isinstance(found, list):
        return tuple(deserialise(one) for one in found)
    if not isinstance(found, dict):
        return found
    kind = PARTS.get(str(found.get("part")))
    if kind is None:
        raise ValueError(f"found part {found.get('part')!r}; known parts are {', '.join(PARTS)}")
    values = {name: deserialise(one) for name, one in found.items() if name != "part"}
    _check_fields(kind, values)
    return kind(**values)


def _check_fields(kind: type[Any], values: dict[str, Any]) -> None:
    """Raise `ValueError` for a wrong field; integers become floats where those are expected."""
    expected = _serialised(kind)
    if values.keys() != set(expected):
        raise ValueError(f"{kind.__name__}: found fields {sorted(values)}; expected {expected}")
    hints = _HINTS[kind.__name__]
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(
                f"{kind.__name__}: found {name} {value!r}; expected a value of type {hints[name]}"
            )
        if type(value) is int and (hints[name] is float or float in get_args(hints[name])):
            values[name] = float(value)


def _fits(value: Any, hint: Any) -> bool:
    """Is the value of this type? An integer is a valid float."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is Literal:
        return value in inner
    if kind is tuple:
        return isinstance(value, tuple) and _all_fit(value, inner)
    if hint is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    """Is each value of its type? With `...` all must be of the first type."""
    if hints[-1] is ...:
        hints = hints[:1] * len(values)
    return len(values) == len(hints) and all(map(_fits, values, hints))
