"""What the parts of a recipe are called on a diagram."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import Any

from lloydformer.circuits.products import Difference, Product
from lloydformer.circuits.projections import Block, Dense, Number, Projection
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled, Score
from lloydformer.circuits.subspaces import Subspace
from lloydformer.plots.diagrams.svg import TIED

_NAMES = {
    "LimitingSoftmax": "limiting soft-max",
    "Softmax": "soft-max",
    "LogSoftmax": "log soft-max",
    "Gumbel": "Gumbel soft-max",
    "TopK": "top-m soft-max",
    "NormMax": "norm-max",
    "RMSNorm": "RMS norm",
    "LayerNorm": "layer norm",
    "OneHot": "one-hot",
    "inverse_temperature": "γ",
}
"""Names that are not the words of the class or field."""


def part_words(part: object) -> str:
    """Return the name of a part with its parameters: "soft-max, γ 1"; a user's part as well."""
    parameters = fields(part) if is_dataclass(part) else ()
    words = [_name(type(part).__name__)]
    words += [_parameter(field.name, getattr(part, field.name)) for field in parameters]
    return ", ".join(filter(None, words))


def _name(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().replace("_", " ")
    return _NAMES.get(name, spaced)


def _parameter(name: str, value: Any) -> str:
    """Return "γ 0.5", "ties first", "in order"; nothing for what is not set."""
    if value is None or value is False or value == ():
        return ""
    if value is True:
        return _name(name)
    return _name(name) + (" " if is_dataclass(value) else TIED) + _value(value)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return " ".join(map(_value, value))
    return part_words(value) if is_dataclass(value) else str(value)


def score_words(score: Score) -> str:
    """Return the formula of a score of query q and key k."""
    if isinstance(score, Scaled):
        return f"{score_words(score.score)} / √dim"
    if isinstance(score, Euclidean):
        return "−|q − k|²"
    return "⟨q, k⟩" if isinstance(score, DotProduct) else f"{score.symbol} ({part_words(score)})"


def projection_words(projection: Projection | Dense) -> str:
    """Return the subspaces that a matrix reads: "position + √δ assignment", "− position"."""
    if isinstance(projection, Dense):
        return "learned matrix" + (" and bias" if projection.bias else "")
    same = groupby(projection.blocks, lambda b: (b.coefficient, b.power, b.number, b.letter))
    terms = [_term(*key, list(blocks)) for key, blocks in same]
    return " + ".join(terms).replace("+ −", "−") or "nothing"


def _term(
    coefficient: float, power: float, number: Number | None, letter: str, blocks: list[Block]
) -> str:
    size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g}"
    root = {0.0: "", 0.5: "√δ", 1.0: "δ"}.get(power, f"δ^{power:g}")
    mean = "" if letter == Block.letter else f"{_name(type(blocks[0]).__name__)} of"
    factor = " ".join(filter(None, [size + root, f"{number}{TIED}·" if number else "", mean]))
    minus, names = "−" if coefficient < 0 else "", _subspaces(blocks)
    alone = len(names) == 1 or not (minus or factor)
    listed = ", ".join(names) if alone else f"({', '.join(names)})"
    return TIED.join(filter(None, [minus, factor, listed]))


def _subspaces(blocks: Iterable[Block]) -> list[str]:
    """Return what each block reads, with what it writes if that is another; swaps as one."""
    pairs = [(b.source, b.target) for b in blocks]
    names = []
    for source, target in pairs:
        if source == target:
            names.append(subspace_words(source).replace(" ", TIED))
        elif (target, source) not in pairs:
            names.append(_arrow(source, "→", target))
        elif pairs.index((source, target)) < pairs.index((target, source)):
            names.append(_arrow(source, "⇄", target))
    return names


def _arrow(source: Subspace, sign: str, target: Subspace) -> str:
    return f"{subspace_words(source)} {sign} {subspace_words(target)}".replace(" ", TIED)


def subspace_words(subspace: Subspace) -> str:
    """Return the name of a subspace with spaces."""
    return subspace.name.replace("_", " ")


def product_words(product: Product) -> str:
    """Return what a bilinear network adds: "|position − center|²", "share · rest"."""
    left, right = _difference(product.left), _difference(product.right)
    squared = f"|{left.strip('()')}|²" if left == right else f"{left} · {right}"
    size = "" if abs(product.coefficient) == 1 else f"{abs(product.coefficient):g} "
    return ("− " if product.coefficient < 0 else "") + size + squared


def _difference(one: Difference) -> str:
    name = subspace_words(one.subspace)
    return f"({name} − {subspace_words(one.less)})" if one.less else name
