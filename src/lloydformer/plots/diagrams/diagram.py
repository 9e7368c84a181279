"""The diagram of a recipe."""

from collections.abc import Iterator
from dataclasses import fields

from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.plots.diagrams.layer import layer_columns
from lloydformer.plots.diagrams.stages import stage_panels
from lloydformer.plots.diagrams.streams import streams
from lloydformer.plots.diagrams.svg import measured, picture, text
from lloydformer.plots.diagrams.words import part_words, subspace_words

MARGIN = 20.0


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
        columns = layer_columns(recipe)
        body, right, bottom = streams(columns, MARGIN, 96.0)
    elif isinstance(recipe, Staged):
        body, right, bottom = stage_panels(recipe, MARGIN, 96.0)
    else:
        raise TypeError(
            f"recipe: found {recipe!r}; pass a recipe, for example lloydformer.recipes.lloyd()"
        )
    return _framed(recipe, body, right, bottom)


def _framed(recipe: AnyRecipe, body: list[str], right: float, bottom: float) -> str:
    """Return the picture with its title above and its notes below."""
    algorithm = recipe.algorithm.lstrip("*")
    title = f"{recipe.name}: {algorithm}" if algorithm else recipe.name
    notes = list(_notes(recipe))
    words = [measured(title, "title"), *(measured(note, "note") for note in notes)]
    lines = [
        text(title, MARGIN, 38, "title"),
        text(", ".join(filter(None, ["one layer", recipe.appendix])), MARGIN, 60, "note"),
        *body,
        *(text(note, MARGIN, bottom + 34 + 18 * i, "note") for i, note in enumerate(notes)),
    ]
    width, height = max(right, *(MARGIN + w for w in words)), bottom + 34 + 18 * len(notes)
    return picture(width + MARGIN, height, f"One layer of {title}", recipe.equation(), lines)


def _notes(recipe: AnyRecipe) -> Iterator[str]:
    """Yield what a reader of the drawing needs to know."""
    yield from (
        _staged_notes(recipe)
        if isinstance(recipe, Staged)
        else ("⊕ adds to the stream. Thick outlines: what the layer has written.",)
    )
    yield "The score compares the query q with the key k; the activation turns scores into weights."
    heads = recipe.heads.values()
    if any(getattr(head.activation, "inverse_temperature", None) for head in heads):
        yield "γ: inverse temperature; it multiplies the scores."
    if any(head.separated for head in heads):
        yield "δ: separation; it lowers the scores of other clusters' points."
    if recipe.embeds_again:
        yield "Tokens are made anew before the next layer: only the centers pass on."


def _staged_notes(recipe: Staged) -> Iterator[str]:
    yield "A panel is a stage: its attentions, then its networks, are added to its tokens."
    outer = [*map(subspace_words, recipe.tokens.subspaces), part_words(recipe.tokens.codes)]
    counts = (f"{f.name} {getattr(recipe.counts, f.name)}" for f in fields(recipe.counts))
    yield f"Points and centers: {', '.join(outer)} codes. Further tokens: {', '.join(counts)}."
    yield "Subspaces of all tokens inside the layer, by the kind of their size:"
    kinds = dict.fromkeys(kind for _, kind in recipe.inner)
    for kind in kinds:
        names = ", ".join(subspace_words(s) for s, other in recipe.inner if other == kind)
        yield f"{kind}: {names}"
