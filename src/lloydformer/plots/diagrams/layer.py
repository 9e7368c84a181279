"""The boxes of a layer's diagram: its tokens, heads, norm and network between two streams."""

from collections.abc import Iterator
from typing import Literal

from lloydformer.circuits.display import SIDES
from lloydformer.circuits.feedforward import FeedForward
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.plots.diagrams.cards import Card, CardRow, Stack
from lloydformer.plots.diagrams.columns import (
    Branch,
    BranchColumn,
    Chips,
    Column,
    InlineColumn,
    Side,
    Tap,
    TokenColumn,
)
from lloydformer.plots.diagrams.descriptions import (
    describe_part,
    describe_projection,
    describe_score,
    spell_subspace,
)

# The streams and the words for their tokens, by the symbols of `SIDES`.
STREAMS: dict[str, Side] = {"X": "encoder", "C": "decoder"}
TOKENS = {"X": "points", "C": "centers"}

SLOTS = {
    "encoder_self": "encoder self-attention",
    "encoder_cross": "encoder cross-attention",
    "affinity": "encoder affinity",
    "decoder_self": "decoder self-attention",
    "decoder_cross": "decoder cross-attention",
}

# Names in the trace of the sums after a slot. After other slots the sum is the token that comes
# next, which has a name of its own.
_TOTALS = {
    "encoder_self": "encoder_residual",
    "decoder_self": "decoder_residual",
    "decoder_cross": "decoder_middle",
}


def layer_columns(recipe: Recipe) -> list[Column]:
    """Return the columns of one layer, in the order in which its parts run."""
    columns: list[Column] = [token_column(recipe, "tokens")]
    if recipe.numbers:
        columns.append(numbers_column(recipe))
    columns.append(_attention_column(recipe, "encoder_self", "encoder_cross"))
    if recipe.affinity:
        columns.append(_attention_column(recipe, "affinity"))
    columns += _after_attention(recipe, "encoder")
    columns.append(_attention_column(recipe, "decoder_self", "decoder_cross"))
    columns += _after_attention(recipe, "decoder")
    return [*columns, token_column(recipe, "next")]


def _after_attention(recipe: Recipe, side: Side) -> Iterator[Column]:
    """Yield the norm and the network of one side, if the recipe has them."""
    before = "encoder_" if side == "encoder" else ""
    if norm := getattr(recipe, f"{before}norm"):
        rows = (CardRow("", describe_part(norm), "norm"), CardRow("", "of the position"))
        yield InlineColumn(Card(f"{before}norm", "norm", rows, "network"), side)
    if network := getattr(recipe, f"{before}feedforward"):
        yield network_column(recipe, network, side)


def token_column(recipe: Recipe, when: Literal["tokens", "next"]) -> TokenColumn:
    """Return the tokens that enter a layer, or those that leave it, with what it has written."""

    def spell(subspace: str) -> str:
        code = f": {describe_part(recipe.tokens.codes)}" if subspace == ASSIGNMENT.name else ""
        return subspace.replace("_", " ") + code

    names = tuple(spell(s.name) for s in recipe.tokens.subspaces)
    encoder, decoder = (
        Chips(
            f"{side}_{when}",
            f"{TOKENS[symbol]} {symbol}",
            f"{side}_{when}",
            names,
            frozenset(map(spell, written_subspaces(recipe, symbol) if when == "next" else ())),
        )
        for symbol, side in STREAMS.items()
    )
    return TokenColumn(encoder, decoder)


def written_subspaces(recipe: Recipe, symbol: str) -> set[str]:
    """Return the subspaces that the values of a side's heads, and the numbers, write."""
    if recipe.free:
        return {s.name for s in recipe.tokens.subspaces}
    slots = [heads for slot, heads in recipe.slots.items() if SIDES[slot][0] == symbol]
    values = [head.value for heads in slots for head in heads.values()]
    targets = {b.target.name for v in values if isinstance(v, Projection) for b in v.blocks}
    if recipe.numbers and STREAMS[symbol] == "encoder":
        targets |= {s.name for s in recipe.numbers.subspaces}
    return targets


def _attention_column(recipe: Recipe, *slots: str) -> BranchColumn:
    """Return the column of some slots that read the same tokens."""
    branches = []
    for slot in slots:
        queries, keys = (TOKENS[symbol] for symbol in SIDES[slot])
        kind = "self" if queries == keys else "cross"
        cards = []
        for part, head in recipe.slots[slot].items():
            number = part.removeprefix(slot).strip("_")
            name = SLOTS[slot] + (f", head {number}" if number else "")
            rows = tuple(describe_head(head))
            cards.append(Card(part, name, rows, kind, f"{queries} attend to {keys}"))
        branches.append(attention_branch(slot, cards))
    return BranchColumn(tuple(branches))


def attention_branch(slot: str, cards: list[Card]) -> Branch:
    """Return the boxes of a slot with wires from its queries and from its keys."""
    queries, keys = (STREAMS[symbol] for symbol in SIDES[slot])
    taps = Tap(queries, "query"), Tap(keys, "key, value")
    return Branch(Stack(slot, cards), taps, queries, _TOTALS.get(slot, ""))


def describe_head(head: Head) -> Iterator[CardRow]:
    """Yield a row for each part of a head that it has."""
    yield CardRow("score", describe_score(head.score), "score")
    yield CardRow("activation", describe_part(head.activation), "activation")
    for name, projection in head.projections.items():
        yield CardRow(name, describe_projection(projection), name)
    if head.sharpness:
        yield CardRow("score times", str(head.sharpness), "sharpness")
    if head.separated:
        words = "chosen from the data" if head.separation is None else f"{head.separation:g}"
        yield CardRow("δ", words, "separation")
    if head.dropout:
        yield CardRow("dropout", f"{head.dropout:g}", "dropout")


def network_column(recipe: Recipe, network: FeedForward, side: Side) -> BranchColumn:
    """Return a feed-forward network, which reads and writes the stream of one side alone."""
    used = [spell_subspace(s) for s in recipe.tokens.subspaces if s in network.subspaces]
    kind = CardRow("kind", describe_part(network), "feedforward")
    rows = (kind, CardRow("uses", ", ".join(used)))
    name = "feedforward" if side == "decoder" else "encoder_feedforward"
    each = "each center by itself" if side == "decoder" else "each point by itself"
    card = Card(name, "feed-forward network", rows, "network", each)
    return BranchColumn((Branch(Stack(name, [card]), (Tap(side),), side),))


def numbers_column(recipe: Recipe) -> BranchColumn:
    """Return the numbers of a layer, which are computed from both streams before its heads."""
    numbers = recipe.numbers
    assert numbers is not None
    kinds = [f"{kind} ({n})" if n > 1 else kind for kind, n in numbers.kinds.items() if n]
    written = [spell_subspace(s) for s in recipe.tokens.subspaces if s in numbers.subspaces]
    rows = (
        CardRow("made by", describe_part(numbers), "numbers"),
        CardRow("sets", ", ".join(kinds)),
        CardRow("writes", ", ".join(written)),
    )
    card = Card("numbers", "numbers of the layer", rows, "numbers", "computed before the heads")
    taps = Tap("encoder", "points"), Tap("decoder", "centers")
    return BranchColumn((Branch(Stack("numbers", [card]), taps, "encoder", replaces=True),))
