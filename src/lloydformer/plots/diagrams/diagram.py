"""The diagram of a recipe."""

from collections.abc import Iterator
from dataclasses import fields

from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.plots.diagrams.columns import draw_columns
from lloydformer.plots.diagrams.descriptions import describe_part, spell_subspace
from lloydformer.plots.diagrams.layer import layer_columns
from lloydformer.plots.diagrams.stages import draw_stages
from lloydformer.plots.diagrams.svg import picture, text, text_width

_MARGIN = 20.0
# Pixels above the drawing, for the title and the line below it.
_TOP = 96.0


def diagram(recipe: AnyRecipe) -> str:
    """Return a diagram of a recipe's layer, as SVG.

    Points and centers are two streams of tokens from left to right. Each head is a box with its
    score, its activation, and what query, key and value read; norm, network, affinity and numbers
    are there if the recipe has them. A recipe of several stages is drawn as its stages. Boxes have
    the attribute data-part with the name of the part in a trace.

    Parameters
    ----------
    recipe : Recipe or Staged
        The recipe.

    Returns
    -------
    str
        The SVG, a file of its own or a part of a page. It follows the light or dark mode of the
        reader.

    Raises
    ------
    TypeError
        If `recipe` is not a recipe.

    See Also
    --------
    lloydformer.Recipe.equation : The same layer as an equation.
    attention_map : The attention of one head on data.

    Examples
    --------
    >>> import lloydformer as lf
    >>> from lloydformer import plots
    >>> svg = plots.diagram(lf.recipes.trimmed(keep=0.9))
    >>> "norm-max, keep 0.9" in svg, 'data-part="decoder_cross"' in svg
    (True, True)
    """
    if isinstance(recipe, Recipe):
        body, right, bottom = draw_columns(layer_columns(recipe), _MARGIN, _TOP)
    elif isinstance(recipe, Staged):
        body, right, bottom = draw_stages(recipe, _MARGIN, _TOP)
    else:
        raise TypeError(
            f"recipe: found {recipe!r}; pass a recipe, for example lloydformer.recipes.lloyd()"
        )
    algorithm = recipe.algorithm.lstrip("*")
    title = f"{recipe.name}: {algorithm}" if algorithm else recipe.name
    notes = list(_notes(recipe))
    lines = [
        text(title, _MARGIN, 38, "title"),
        text(", ".join(filter(None, ["one layer", recipe.appendix])), _MARGIN, 60, "note"),
        *body,
        *(text(note, _MARGIN, bottom + 34 + 18 * i, "note") for i, note in enumerate(notes)),
    ]
    words = [text_width(title, "title"), *(text_width(note, "note") for note in notes)]
    width, height = max(right, *(_MARGIN + w for w in words)), bottom + 34 + 18 * len(notes)
    return picture(width + _MARGIN, height, f"One layer of {title}", recipe.equation(), lines)


def _notes(recipe: AnyRecipe) -> Iterator[str]:
    """Yield the lines below the drawing, which explain its signs."""
    if isinstance(recipe, Staged):
        yield "A panel is a stage: its attentions, then its networks, are added to its tokens."
        outer = [*map(spell_subspace, recipe.tokens.subspaces), describe_part(recipe.tokens.codes)]
        counts = (f"{f.name} {getattr(recipe.counts, f.name)}" for f in fields(recipe.counts))
        yield f"Points and centers: {', '.join(outer)} codes. Further tokens: {', '.join(counts)}."
        yield "Subspaces of all tokens inside the layer, by the kind of their size:"
        for kind in dict.fromkeys(kind for _, kind in recipe.inner):
            names = ", ".join(spell_subspace(s) for s, other in recipe.inner if other == kind)
            yield f"{kind}: {names}"
    else:
        yield "⊕ adds to the stream. Thick outlines: what the layer has written."
    yield "The score compares the query q with the key k; the activation turns scores into weights."
    heads = recipe.heads.values()
    if any(getattr(head.activation, "inverse_temperature", None) for head in heads):
        yield "γ: inverse temperature; it multiplies the scores."
    if any(head.separated for head in heads):
        yield "δ: separation; it lowers the scores of other clusters' points."
    if recipe.embeds_again:
        yield "Tokens are made anew before the next layer: only the centers pass on."
