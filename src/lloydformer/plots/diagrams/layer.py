"""The diagram of a layer: its tokens, heads, norm and network between two streams."""

from collections.abc import Iterator
from typing import Literal

from lloydformer.circuits.heads import Head
from lloydformer.circuits.notation import SIDES
from lloydformer.circuits.projections import Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.plots.diagrams.cards import Card, Row, Stack
from lloydformer.plots.diagrams.columns import (
    Attached,
    Chips,
    Column,
    Inline,
    Side,
    Tap,
    TokenColumn,
    Update,
)
from lloydformer.plots.diagrams.words import (
    part_words,
    projection_words,
    score_words,
    subspace_words,
)

TOKENS = {"X": "points", "C": "centers"}
SLOTS = {
    "encoder_self": "encoder self-attention",
    "encoder_cross": "encoder cross-attention",
    "affinity": "encoder affinity",
    "decoder_self": "decoder self-attention",
    "decoder_cross": "decoder cross-attention",
}
_TOTALS = {"encoder_self": "encoder_residual", "decoder_self": "decoder_residual",
           "decoder_cross": "decoder_middle"}  # fmt: skip
"""Names in the trace of the sums after a slot; the others are the tokens that come next."""


def layer_columns(recipe: Recipe) -> list[Column]:
    """Return the columns of one layer, in the order in which its parts run."""
    return [
        tokens(recipe, "tokens"),
        *([_numbers(recipe)] if recipe.numbers else []),
        update(recipe, "encoder_self", "encoder_cross"),
        *([update(recipe, "affinity")] if recipe.affinity else []),
        update(recipe, "decoder_self", "decoder_cross"),
        *([_norm(recipe)] if recipe.norm else []),
        *([_network(recipe)] if recipe.feedforward else []),
        tokens(recipe, "next"),
    ]


def tokens(recipe: Recipe, when: Literal["tokens", "next"]) -> TokenColumn:
    """Return the tokens that enter a layer, or those that leave it, with what it has written."""
    names = tuple(_chip(recipe, s.name) for s in recipe.tokens.subspaces)

    def side(name: Side, symbol: str) -> Chips:
        written = _written(recipe, name) if when == "next" else frozenset[str]()
        part = f"{name}_{when}"
        return Chips(part, f"{TOKENS[symbol]} {symbol}", part, names,
                     frozenset(_chip(recipe, s) for s in written))  # fmt: skip

    return TokenColumn(side("encoder", "X"), side("decoder", "C"))


def _chip(recipe: Recipe, subspace: str) -> str:
    """Return the words for a subspace; the assignment names its code."""
    code = f": {part_words(recipe.tokens.codes)}" if subspace == ASSIGNMENT.name else ""
    return subspace.replace("_", " ") + code


def _written(recipe: Recipe, side: Side) -> frozenset[str]:
    """Return the subspaces that the values of this side's heads, and the numbers, write."""
    symbol = {"encoder": "X", "decoder": "C"}[side]
    heads = [h for slot, found in recipe.slots.items() if SIDES[slot][0] == symbol
             for h in found.values()]  # fmt: skip
    every = {s.name for s in recipe.tokens.subspaces}
    targets = {
        b.target.name for h in heads if isinstance(h.value, Projection) for b in h.value.blocks
    }
    if recipe.numbers and side == "encoder":
        targets |= {s.name for s in recipe.numbers.subspaces}
    return frozenset(every if recipe.free else targets)


def update(recipe: Recipe, *slots: str) -> Update:
    """Return the column of some slots that read the same tokens."""
    cards = {
        slot: [head_card(name, slot, head) for name, head in recipe.slots[slot].items()]
        for slot in slots
    }
    return Update(tuple(attention(slot, found) for slot, found in cards.items()))


def attention(slot: str, cards: list[Card]) -> Attached:
    """Return the boxes of a slot with wires from its queries and from its keys."""
    sides: dict[str, Side] = {"X": "encoder", "C": "decoder"}
    queries, keys = (sides[symbol] for symbol in SIDES[slot])
    taps = Tap(queries, "query"), Tap(keys, "key, value")
    return Attached(Stack(slot, cards), taps, queries, _TOTALS.get(slot, ""))


def head_card(part: str, slot: str, head: Head) -> Card:
    """Return the card of a head: score, activation, and what query, key and value read."""
    queries, keys = (TOKENS[symbol] for symbol in SIDES[slot])
    kind = "self" if queries == keys else "cross"
    number = part.removeprefix(slot).strip("_")
    name = SLOTS[slot] + (f", head {number}" if number else "")
    return Card(part, name, tuple(head_rows(head)), kind, f"{queries} attend to {keys}")


def head_rows(head: Head) -> Iterator[Row]:
    """Yield a row for each part of a head that it has."""
    yield Row("score", score_words(head.score), "score")
    yield Row("activation", part_words(head.activation), "activation")
    for name, projection in head.projections.items():
        yield Row(name, projection_words(projection), name)
    if head.sharpness:
        yield Row("score times", str(head.sharpness), "sharpness")
    if head.separated:
        given = head.separation
        yield Row("δ", "chosen from the data" if given is None else f"{given:g}", "separation")
    if head.dropout:
        yield Row("dropout", f"{head.dropout:g}", "dropout")


def _norm(recipe: Recipe) -> Inline:
    rows = (Row("", part_words(recipe.norm), "norm"), Row("", "of the position"))
    return Inline(Card("norm", "norm", rows, "network"), "decoder")


def _network(recipe: Recipe) -> Update:
    network = recipe.feedforward
    assert network is not None
    used = [subspace_words(s) for s in recipe.tokens.subspaces if s in network.subspaces]
    rows = (Row("kind", part_words(network), "feedforward"), Row("uses", ", ".join(used)))
    card = Card("feedforward", "feed-forward network", rows, "network", "each center by itself")
    return Update((Attached(Stack("feedforward", [card]), (Tap("decoder"),), "decoder"),))


def _numbers(recipe: Recipe) -> Update:
    numbers = recipe.numbers
    assert numbers is not None
    kinds = [f"{kind} ({count})" if count > 1 else kind for kind, count in numbers.kinds.items()
             if count]  # fmt: skip
    written = [subspace_words(s) for s in recipe.tokens.subspaces if s in numbers.subspaces]
    rows = (
        Row("made by", part_words(numbers), "numbers"),
        Row("sets", ", ".join(kinds)),
        Row("writes", ", ".join(written)),
    )
    card = Card("numbers", "numbers of the layer", rows, "numbers", "computed before the heads")
    taps = Tap("encoder", "points"), Tap("decoder", "centers")
    return Update((Attached(Stack("numbers", [card]), taps, "encoder", replaces=True),))
