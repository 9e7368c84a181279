"""The stars of the table tab:comp-alg: a recipe with dot-product scores, and one on the sphere."""

from dataclasses import replace
from typing import Literal

from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.projections import Projection, lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import LIFTED, lifted_score
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import lifted, plain

# In the query of a center, with y in the key of a point: <2 delta e_j, y> raises the scores of the
# cluster's own points by 2 delta, which is to lower those of others by as much.
RAISED = separated(ASSIGNMENT, coefficient=2.0, power=1.0)


def with_dot_products(recipe: AnyRecipe) -> Recipe:
    r"""Return the recipe with dot-product scores of lifted tokens in place of Euclidean ones.

    $\ell(x)^\top \pi\, \ell(c) = -\lVert x - c \rVert^2$ (lem perm), so the circuit runs the same
    algorithm; a network renews the squared norms of the centers. The table tab:comp-alg marks the
    algorithms for which the paper names this variation with a star.

    Parameters
    ----------
    recipe : Recipe
        A recipe that compares positions by distance, with plain tokens and one-hot codes, for
        example `lf.recipes.trimmed()`.

    Returns
    -------
    Recipe
        The recipe, with "_dot" after its name.

    Raises
    ------
    ValueError
        If a head compares something other than positions by distance.

    See Also
    --------
    on_sphere : The other variation.
    robust_lifted : The paper's own form of robust k-means with dot products.

    Examples
    --------
    >>> import lloydformer as lf
    >>> recipe = lf.recipes.with_dot_products(lf.recipes.trimmed())
    >>> recipe.name, recipe.row()["Dec-CA"]
    ('trimmed_dot', '⟨,⟩-NMA')
    >>> lf.recipes.with_dot_products(lf.recipes.lloyd()) == lf.recipes.lloyd_dot()
    True
    """
    base = _check_by_distance(recipe)
    cross = base.decoder_cross
    if cross.separated:
        query = lifting(POSITION) + RAISED
        cross = replace(cross, score=DotProduct(), query=query, key=on(*LIFTED, ASSIGNMENT))
    return replace(
        base,
        name=f"{base.name}_dot",
        tokens=lifted(),
        encoder_cross=lifted_score(base.encoder_cross, ASSIGNMENT),
        encoder_self=lifted_score(base.encoder_self, ASSIGNMENT),
        decoder_cross=cross,
        decoder_self=replace(base.decoder_self, value=-on(*LIFTED)),
        feedforward=Quadratic(),
        appendix="tab:comp-alg",
        stated=None,  # the algorithm is the same
    )


def on_sphere(recipe: AnyRecipe, norm: Literal["rms", "layer"] = "rms") -> Recipe:
    r"""Return the recipe for unit vectors: dot products of positions, and a norm of the centers.

    As `spherical` is to `lloyd`: a point chooses centers by $\langle x, c \rangle$, the points of a
    cluster weigh by it, and a new center is a direction. The table tab:comp-alg marks the
    algorithms for which the paper names this variation with a star.

    Parameters
    ----------
    recipe : Recipe
        A recipe that compares positions by distance, with plain tokens and one-hot codes, for
        example `lf.recipes.soft(5.0)`. Its inverse temperature multiplies the dot product, and its
        separation lowers it.
    norm : {"rms", "layer"}, default="rms"
        Normalisation of the new centers, see `spherical`.

    Returns
    -------
    Recipe
        The recipe, with "spherical_" before its name. Points must be unit vectors; the initial
        centers need not be.

    Raises
    ------
    ValueError
        If a head compares something other than positions by distance, or there is no such norm.

    See Also
    --------
    spherical : The same of Lloyd's algorithm.
    with_dot_products : The other variation.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> recipe = lf.recipes.on_sphere(lf.recipes.soft(5.0))
    >>> points = torch.nn.functional.normalize(torch.randn(50, 3), dim=-1)
    >>> trace = lf.Circuit(recipe, 3, 2)(points, points[:2], n_layers=3)
    >>> recipe.name, bool(torch.allclose(trace.centers[-1].norm(dim=-1), torch.ones(2)))
    ('spherical_soft', True)
    """
    base = _check_by_distance(recipe)
    if norm not in ("rms", "layer"):
        raise ValueError(f'norm: found {norm!r}; pass "rms" or "layer"')
    cross = base.decoder_cross
    if cross.separated:
        query, key = on(POSITION) + RAISED, on(POSITION, ASSIGNMENT)
        cross = replace(cross, score=DotProduct(), query=query, key=key)
    return replace(
        base,
        name="spherical" if base.name == "lloyd" else f"spherical_{base.name}",
        encoder_cross=replace(base.encoder_cross, score=DotProduct()),
        encoder_self=replace(base.encoder_self, score=DotProduct()),
        decoder_cross=cross,
        norm=RMSNorm() if norm == "rms" else LayerNorm(),
        algorithm=f"{base.algorithm}, spherical",
        appendix="tab:comp-alg",
        stated=None,
    )


def _check_by_distance(recipe: AnyRecipe) -> Recipe:
    """Return the recipe if the scores of points are Euclidean; raise ValueError otherwise."""
    by_position: tuple[Projection, ...] = (on(POSITION), on(POSITION) + separated(ASSIGNMENT))

    def compares_positions(head: Head) -> bool:
        same = head.query == head.key and head.query in by_position
        return same and isinstance(head.score, Euclidean) and not head.beside

    why = ""
    if not isinstance(recipe, Recipe) or recipe.free or recipe.numbers is not None:
        why = "whose weights are not constructed in one layer"
    elif recipe.tokens != plain() or recipe.affinity or recipe.norm or recipe.feedforward:
        why = "which is not one of plain tokens, without norm and network"
    elif not (compares_positions(recipe.encoder_cross) and compares_positions(recipe.encoder_self)):
        why = "whose encoder does not compare positions by distance"
    elif recipe.decoder_cross.separated and not compares_positions(recipe.decoder_cross):
        why = "whose decoder does not compare positions by distance"
    if why:
        raise ValueError(
            f"recipe: found {recipe.name!r}, {why}; pass lloyd(), soft(), trimmed(), robust() or "
            "medoids(), or one with other activations"
        )
    assert isinstance(recipe, Recipe)
    return recipe
