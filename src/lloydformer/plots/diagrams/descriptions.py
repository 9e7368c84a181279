"""Short descriptions of a recipe's parts, for the cards of a diagram."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import Any

from lloydformer.circuits.feedforward import Difference, Product
from lloydformer.circuits.projections import Block, Dense, Projection
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled, Score
from lloydformer.circuits.subspaces import Subspace
from lloydformer.plots.diagrams.svg import NO_BREAK

# Names that are not the words of the class or field.
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


def describe_part(part: object) -> str:
    """Return the name of a part with its parameters: "soft-max, γ 1"; a user's part as well."""
    words = [_spell(type(part).__name__)]
    for field in fields(part) if is_dataclass(part) else ():
        name, value = _spell(field.name), getattr(part, field.name)
        if value is True:
            words.append(name)
        elif not (value is None or value is False or value == ()):  # what is not set is left out
            # A number stays on the line of its name; the words of a part may go to the next line.
            space = " " if is_dataclass(value) else NO_BREAK
            words.append(name + space + _describe_value(value))
    return ", ".join(words)


def _spell(name: str) -> str:
    """Return the words of a class or field: "top-m soft-max", "ties"."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().replace("_", " ")
    return _NAMES.get(name, spaced)


def _describe_value(value: Any) -> str:
    """Return the words of a parameter: "0.5", "first", "1 2", "soft-max, γ 1"."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return " ".join(map(_describe_value, value))
    return describe_part(value) if is_dataclass(value) else str(value)


def describe_score(score: Score) -> str:
    """Return the formula of a score of query q and key k."""
    if isinstance(score, Scaled):
        return f"{describe_score(score.score)} / √dim"
    if isinstance(score, Euclidean):
        return "−|q − k|²"
    if isinstance(score, DotProduct):
        return "⟨q, k⟩"
    return f"{score.symbol} ({describe_part(score)})"


def describe_projection(projection: Projection | Dense) -> str:
    """Return the subspaces that a matrix reads: "position + √δ assignment", "− position"."""
    if isinstance(projection, Dense):
        return "learned matrix" + (" and bias" if projection.bias else "")
    terms = []
    # Neighbouring blocks with one factor are one term: "− (position, squared norm)".
    same = groupby(projection.blocks, lambda b: (b.coefficient, b.power, b.number, b.letter))
    for (coefficient, power, number, letter), group in same:
        blocks = list(group)
        size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g}"
        root = {0.0: "", 0.5: "√δ", 1.0: "δ"}.get(power, f"δ^{power:g}")
        times = f"{number}{NO_BREAK}·" if number else ""
        # A block of another letter than the identity's takes a mean, and its class says of what.
        mean = "" if letter == Block.letter else f"{_spell(type(blocks[0]).__name__)} of"
        factor = " ".join(filter(None, [size + root, times, mean]))
        minus, names = "−" if coefficient < 0 else "", _spell_blocks(blocks)
        alone = len(names) == 1 or not (minus or factor)
        listed = ", ".join(names) if alone else f"({', '.join(names)})"
        terms.append(NO_BREAK.join(filter(None, [minus, factor, listed])))
    return " + ".join(terms).replace("+ −", "−") or "nothing"


def _spell_blocks(blocks: Iterable[Block]) -> list[str]:
    """Return what each block reads, with what it writes if that is another; swaps as one."""
    pairs = [(b.source, b.target) for b in blocks]
    names = []
    for source, target in pairs:
        if source == target:
            names.append(spell_subspace(source))
        elif (target, source) not in pairs:
            names.append(f"{spell_subspace(source)} → {spell_subspace(target)}")
        elif pairs.index((source, target)) < pairs.index((target, source)):
            names.append(f"{spell_subspace(source)} ⇄ {spell_subspace(target)}")
    return [name.replace(" ", NO_BREAK) for name in names]


def spell_subspace(subspace: Subspace) -> str:
    """Return the name of a subspace with spaces."""
    return subspace.name.replace("_", " ")


def describe_product(product: Product) -> str:
    """Return what a bilinear network adds: "|position − center|²", "share · rest"."""
    left, right = _describe_difference(product.left), _describe_difference(product.right)
    squared = f"|{left.strip('()')}|²" if left == right else f"{left} · {right}"
    size = "" if abs(product.coefficient) == 1 else f"{abs(product.coefficient):g} "
    return ("− " if product.coefficient < 0 else "") + size + squared


def _describe_difference(factor: Difference) -> str:
    name = spell_subspace(factor.subspace)
    return f"({name} − {spell_subspace(factor.less)})" if factor.less else name
