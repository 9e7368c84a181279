"""Draws the paper's diagrams from the recipes: `python docs/pictures/paper-figures.py`.

fig-overview.svg, fig-architecture.svg and fig-gen-arch.svg show what the captions of fig:overview,
fig:architecture and fig:gen-arch describe. The words on parts come from the recipes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lloydformer as lf
from lloydformer import Recipe
from lloydformer.circuits.display import SIDES
from lloydformer.circuits.heads import Head
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION, Subspace
from lloydformer.plots.diagrams.cards import Card, CardRow, Stack
from lloydformer.plots.diagrams.columns import (
    Branch,
    BranchColumn,
    Chips,
    Column,
    InlineColumn,
    Tap,
    TokenColumn,
    draw_columns,
)
from lloydformer.plots.diagrams.descriptions import (
    describe_part,
    describe_projection,
    describe_score,
    spell_subspace,
)
from lloydformer.plots.diagrams.layer import SLOTS, TOKENS, attention_branch, token_column
from lloydformer.plots.diagrams.svg import picture, rectangle, text

HERE = Path(__file__).parent
CELLS = {
    "encoder_self": "Enc-SA",
    "encoder_cross": "Enc-CA",
    "decoder_self": "Dec-SA",
    "decoder_cross": "Dec-CA",
}
# The lines of alg:lloyds. Lines 5 and 6 are what a layer does.
LLOYD = (
    "Input: points x1, ..., xn",
    "Input: number of iterations T",
    "Input: initial centers c1, ..., ck",
    "for t = 1, ..., T:",
    "    each point: the index of its nearest center",
    "    each center: the mean of its points",
    "return the centers",
)
STEPS = {"encoder_cross": 5, "decoder_cross": 6}


def short_card(slot: str, *rows: CardRow) -> Card:
    """A small card; its place says whether it is the encoder's or the decoder's."""
    queries, keys = SIDES[slot]
    kind = "self" if queries == keys else "cross"
    return Card(slot, SLOTS[slot].split()[-1], rows, kind)


def describe_attention(head: Head) -> tuple[CardRow, CardRow]:
    """Rows for the score and the activation, without its parameters."""
    activation = CardRow("", name_kind(head.activation), "activation")
    return CardRow("", describe_score(head.score), "score"), activation


def name_kind(part: object) -> str:
    """Return the name of a part without its parameters."""
    return describe_part(part).partition(",")[0]


def both(cards: dict[str, Card]) -> list[Column]:
    """The columns of the encoder's and the decoder's update."""
    return [
        BranchColumn(
            tuple(
                attention_branch(f"{side}_{kind}", [cards[f"{side}_{kind}"]])
                for kind in ("self", "cross")
            )
        )
        for side in ("encoder", "decoder")
    ]


# --------------------------------------------------------------------- fig:architecture


# The paper's symbols; those that a layer changes have its number.
SYMBOLS = {
    "encoder": {POSITION: "X", ASSIGNMENT: "Y({})"},
    "decoder": {POSITION: "C({})", ASSIGNMENT: "I"},
}


def token_symbols(recipe: Recipe, layer: int) -> TokenColumn:
    """The tokens before layer 1, 2, ... with the paper's symbols (eq:ed-iterates)."""

    def side(name: str, symbols: dict[Subspace, str], tokens: str) -> Chips:
        shown = tuple(symbols[s].format(layer) for s in recipe.tokens.subspaces)
        new = frozenset(s for s in shown if str(layer) in s) if layer else frozenset()
        return Chips(f"{name}_{layer}", name, tokens, shown, new)

    return TokenColumn(
        side("encoder", SYMBOLS["encoder"], "points"),
        side("decoder", SYMBOLS["decoder"], "centers"),
    )


def architecture() -> str:
    """Two layers of lloyd(), with residual stream, self- and cross-attention."""
    recipe = lf.recipes.lloyd()
    cards = {
        slot: short_card(
            slot,
            *describe_attention(head),
            CardRow("", f"adds {describe_projection(head.value)}", "value"),
        )
        for slot, head in recipe.heads.items()
    }
    columns = [token_symbols(recipe, 0)]
    for layer in (1, 2):
        columns += [*both(cards), token_symbols(recipe, layer)]
    body, right, bottom = draw_columns(columns, 20.0, 86.0)
    where = "each layer is one iteration of Lloyd's algorithm (fig:architecture, eq:l2-trf-updates)"
    notes = (
        "Tokens: position X or C above, assignment Y or name I below; Y(0) is zero.",
        "⊕ adds to the stream: self-attention minus the old value, which cancels it, "
        "cross-attention the new one (thick outline).",
    )
    lines = [
        text("The k-means transformer: two layers of lloyd()", 20, 38, "title"),
        text(where, 20, 60, "note"),
        *body,
        *footnotes(notes, bottom),
    ]
    return picture(
        right + 20, bottom + 70, "The k-means transformer, two layers", recipe.equation(), lines
    )


def footnotes(words: Iterable[str], bottom: float) -> list[str]:
    return [text(line, 20, bottom + 34 + 18 * i, "note") for i, line in enumerate(words)]


# ------------------------------------------------------------------------- fig:gen-arch


def find_users(recipes: tuple[Recipe, ...], part: Callable[[Recipe], str | None]) -> dict[str, str]:
    """What the recipes have for a part, each with the names of the recipes that have it."""
    names = defaultdict(list)
    for recipe in recipes:
        if (found := part(recipe)) is not None:
            names[found].append(recipe.name)
    return {found: ", ".join(all_names) for found, all_names in names.items()}


def general() -> str:
    """The layer as a template: every part with what the rows of the table put there."""
    table = lf.recipes.table()
    cards = {
        slot: short_card(
            slot,
            *(
                CardRow(kind, names, "options")
                for kind, names in find_users(table, lambda r, cell=cell: r.row()[cell]).items()
            ),
        )
        for slot, cell in CELLS.items()
    }
    norm = optional(table, "norm", "norm")
    network = Stack("feedforward", [optional(table, "feedforward", "network")])
    columns = [
        all_tokens(table, "tokens"),
        *both(cards),
        InlineColumn(norm, "decoder"),
        BranchColumn((Branch(network, (Tap("decoder"),), "decoder"),)),
        all_tokens(table, "next"),
    ]
    body, right, bottom = draw_columns(columns, 20.0, 86.0)
    where = "in each box: what can stand there, and the recipes that use it (fig:gen-arch)"
    lines = [
        text("The layer as a template: parts to swap", 20, 38, "title"),
        text(where, 20, 60, "note"),
        *body,
        *footnotes(glossary(table), bottom),
    ]
    return picture(
        right + 20,
        bottom + 88,
        "The general architecture and its parts",
        "Each attention, the norm and the network, with the recipes of the table.",
        lines,
    )


def optional(table: tuple[Recipe, ...], slot: str, name: str) -> Card:
    """The card of a part that most recipes do not have."""
    parts = {recipe.name: getattr(recipe, slot) for recipe in table}
    found = find_users(
        table, lambda recipe: name_kind(parts[recipe.name]) if parts[recipe.name] else None
    )
    rows = tuple(CardRow("", f"{kind}: {names}", "options") for kind, names in found.items())
    return Card(slot, name, rows, "network optional", "or none")


def token_owners(table: tuple[Recipe, ...]) -> dict[str, list[str]]:
    """All subspaces of the recipes, each with the names of the recipes that have it."""
    owners = defaultdict(list)
    for recipe in table:
        for subspace in recipe.tokens.subspaces:
            owners[spell_subspace(subspace)].append(recipe.name)
    return owners


def all_tokens(table: tuple[Recipe, ...], when: str) -> TokenColumn:
    """All subspaces of the recipes, with a dashed outline if not all have them."""
    owners = token_owners(table)
    names, some = tuple(owners), frozenset(n for n, who in owners.items() if len(who) < len(table))
    encoder, decoder = (
        Chips(f"{side}_{when}", side, TOKENS[symbol], names, optional=some)
        for side, symbol in (("encoder", "X"), ("decoder", "C"))
    )
    return TokenColumn(encoder, decoder)


def glossary(table: tuple[Recipe, ...]) -> Iterator[str]:
    """The short names of scores and activations in words, and what is dashed."""
    heads = [head for recipe in table for head in recipe.heads.values()]
    scores = {head.score.symbol: describe_score(head.score) for head in heads}
    kinds = {head.activation.short: name_kind(head.activation) for head in heads}
    yield "Scores: " + ", ".join(f"{sign} is {words}" for sign, words in scores.items()) + "."
    yield "Activations: " + ", ".join(f"{sign} {words}" for sign, words in kinds.items()) + "."
    some = {s: who for s, who in token_owners(table).items() if len(who) < len(table)}
    where = (f"; {subspace} only in {', '.join(who)}" for subspace, who in some.items())
    yield f"Dashed: what not all recipes have{''.join(where)}."


# ------------------------------------------------------------------------- fig:overview


def overview() -> str:
    """Lloyd's algorithm beside the layer that does each of its lines, and the variants."""
    recipe = lf.recipes.lloyd()
    cards = {}
    for slot, head in recipe.heads.items():
        does = (
            f"= line {STEPS[slot]}" if slot in STEPS else f"adds {describe_projection(head.value)}"
        )
        cards[slot] = short_card(slot, *describe_attention(head), CardRow("", does))
    columns = [token_column(recipe, "tokens"), *both(cards), token_column(recipe, "next")]
    left = 385.0
    body, right, bottom = draw_columns(columns, left, 136.0)
    table, end = variants(bottom + 60, right)
    problem = (
        "The problem (eq:kmeans-dc): choose centers c1, ..., ck so that the squared distances of "
        "all points to their nearest center have the least sum."
    )
    lines = [
        text("k-means as a transformer", 20, 38, "title"),
        text(problem, 20, 62, "word"),
        text("A: Lloyd's algorithm", 20, 112, "title"),
        *algorithm(136.0),
        text("B: one layer of lloyd() is one iteration", left + 12, 112, "title"),
        *body,
        *table,
    ]
    return picture(
        right + 20,
        end,
        "k-means as a transformer",
        "Line 5 of Lloyd's algorithm, the assignment, is the encoder's cross-attention; "
        "line 6, the update, is the decoder's.",
        lines,
    )


def algorithm(y: float) -> Iterator[str]:
    """The lines of the algorithm; those that a layer does have the colour of its boxes."""
    by_line = {line: slot for slot, line in STEPS.items()}
    for number, words in enumerate(LLOYD, start=1):
        indent = 14 if words.startswith(" ") else 0
        if number in by_line:
            yield rectangle(42, y - 4, 318, 46, "card cross", 6)
            yield text(f"= {SLOTS[by_line[number]]}", 50 + indent, y + 34, "note")
        yield text(str(number), 24, y + 16, "label")
        yield text(words.strip(), 50 + indent, y + 16, "word")
        y += 54 if number in by_line else 28


def variants(y: float, right: float) -> tuple[list[str], float]:
    """Other algorithms, each with the parts that it changes; the new ones by their appendix."""
    base, *others = lf.recipes.table()
    groups = {
        "known algorithms": [r for r in others if ":new:" not in r.appendix],
        "new algorithms": [r for r in others if ":new:" in r.appendix],
    }
    lines = [text("Swap a part, and it is another algorithm", 20, y, "title")]
    for title, recipes in groups.items():
        height = 34 + 24 * len(recipes)
        lines += [
            rectangle(20, y + 18, right - 20, height, "panel"),
            text(title, 32, y + 40, "name"),
        ]
        for row, recipe in enumerate(recipes):
            words = f"{recipe.algorithm.split(' / ')[-1].lstrip('*')} ({recipe.name})"
            lines.append(text(words, 32, y + 64 + 24 * row, "word"))
            lines.append(text(changes(base, recipe), 290, y + 64 + 24 * row, "note"))
        y += height + 12
    return lines, y + 40


def changes(base: Recipe, recipe: Recipe) -> str:
    """The parts that are not those of the base: places by what stands there now."""
    places = defaultdict(list)
    for slot, head in recipe.heads.items():
        old = getattr(base, slot)
        new = [describe_score(head.score)] * (head.score != old.score)
        new += [name_kind(head.activation)] * (head.activation != old.activation)
        if new:
            places[", ".join(new)].append(SLOTS[slot])
    words = [f"{' and '.join(where)}: {new}" for new, where in places.items()]
    extra = {"norm": recipe.norm, "feed-forward network": recipe.feedforward}
    words += [f"{name}: {name_kind(part)}" for name, part in extra.items() if part]
    return "; ".join(words)


FIGURES = {"fig-overview": overview, "fig-architecture": architecture, "fig-gen-arch": general}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (HERE / f"{name}.svg").write_text(draw(), encoding="utf-8")
