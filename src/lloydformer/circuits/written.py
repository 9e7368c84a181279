"""Recipes and their parts as JSON, and back."""

import math
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lloydformer.circuits.activations import (
    FirstOfEquals,
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    LogSoftmax,
    Lots,
    NormMax,
    Ranked,
    Softmax,
    Sparsemax,
    TopK,
)
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.products import Difference, Product
from lloydformer.circuits.projections import Average, Block, Dense, Number, Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.stages import Counts, Read, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import Subspace
from lloydformer.circuits.symmetric import Fixed
from lloydformer.circuits.tokens import Binary, OneHot, Tokens

_KINDS: tuple[type[Any], ...] = (
    Recipe, Tokens, OneHot, Binary, Subspace, Head, Projection, Block, Average, Number, Dense,
    Euclidean, DotProduct, Scaled, Softmax, LogSoftmax, Linear, Identity, LimitingSoftmax, Gumbel,
    Sparsemax, TopK, NormMax, Ranked, FirstOfEquals, Lots, RMSNorm, LayerNorm, Quadratic, Product,
    Difference, Fixed, Staged, Sublayer, Stage, Read, Counts,
)  # fmt: skip
PARTS = {kind.__name__: kind for kind in _KINDS}
"""What can be written down: the parts of this package. A part of one's own is code, not data."""


def written(part: Any) -> Any:
    """A part as {"part": its name, and its fields}; numbers, texts and None as they are."""
    if type(part) in _KINDS:
        values = {field.name: written(getattr(part, field.name)) for field in fields(part)}
        return {"part": type(part).__name__, **values}
    if isinstance(part, tuple):
        return [written(one) for one in part]
    if part is None or isinstance(part, bool | str):
        return part
    if isinstance(part, Integral):
        return int(part)
    if isinstance(part, Real) and math.isfinite(part):
        return float(part)
    raise ValueError(f"found {part!r}, which is no part of lloydformer and cannot be written down")


def part_of(found: Any) -> Any:
    """The part that `written` wrote."""
    if isinstance(found, list):
        return tuple(part_of(one) for one in found)
    if not isinstance(found, dict):
        return found
    kind = PARTS.get(str(found.get("part")))
    if kind is None:
        raise ValueError(f"found part {found.get('part')!r}; there are {', '.join(PARTS)}")
    values = {name: part_of(one) for name, one in found.items() if name != "part"}
    _check(kind, values)
    return kind(**values)


def _check(kind: type[Any], values: dict[str, Any]) -> None:
    wanted = [field.name for field in fields(kind)]
    if values.keys() != set(wanted):
        raise ValueError(f"{kind.__name__}: found {sorted(values)}; it has {wanted}")
    hints = get_type_hints(kind)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(f"{kind.__name__}: found {name} {value!r}; it is {hints[name]}")


def _fits(value: Any, hint: Any) -> bool:
    """Is the value of this type? Whole numbers are floats, too."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is Literal:
        return value in inner
    if kind is tuple:
        return isinstance(value, tuple) and _all_fit(value, inner)
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    """Is each of its type? With `...` all are of the first one's."""
    if hints[-1] is ...:
        hints = hints[:1] * len(values)
    return len(values) == len(hints) and all(map(_fits, values, hints))
