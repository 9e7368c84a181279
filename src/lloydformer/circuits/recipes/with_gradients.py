"""Recipes whose queries and keys can be trained: finite temperatures, or straight-through."""

from dataclasses import replace
from typing import TypeVar

from lloydformer.circuits.activations import Gumbel, Linear, Softmax, StraightThrough
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.gradients import has_gradient
from lloydformer.circuits.head_mapping import map_heads
from lloydformer.circuits.heads import Head
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.circuits.subspaces import ASSIGNMENT

R = TypeVar("R", bound=AnyRecipe)


def softened(
    recipe: AnyRecipe, inverse_temperature: float, self_attention: float | None = None
) -> Recipe:
    r"""Return the recipe with finite temperatures where its heads select keys.

    `softened(lloyd(), gamma)` has the parts of `soft(gamma)`: soft-max in the encoder's
    cross-attention, and in the decoder's linear attention, which weighs points by their shares.
    A head of the decoder that selects points by distance gets soft-max, so that trimmed k-means
    becomes robust k-means with soft-max. Gumbel attention gets the temperature 1/gamma. Heads
    that have a gradient are unchanged.

    Self-attention stays in the limit by default, and its queries and keys without a gradient: it
    must be the identity to cancel the residual. Soft-max is far from it where points are nearer
    to each other than $1/\sqrt\gamma$ (docs/errata.md, 11), and where it is near to it, its
    gradient vanishes. `straight_through` gives self-attention a gradient.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    inverse_temperature : float
        The paper's gamma, in the cross-attentions. It multiplies the squared distance.
    self_attention : float or None, default=None
        Inverse temperature of self-attention; None leaves it in the limit.

    Returns
    -------
    Recipe
        The recipe, with "_softened" after its name.

    Raises
    ------
    ValueError
        If the recipe is staged, or has binary codes, which cannot hold shares of clusters.

    See Also
    --------
    straight_through : The same result as the recipe, with a gradient for every weight.
    soft : Soft k-means.

    Examples
    --------
    >>> import lloydformer as lf
    >>> print(lf.recipes.softened(lf.recipes.lloyd(), 30.0).equation())
    X ← X + A₂[30](X, C; I[x], I[x], I[y]) + A₂[∞](X, X; I[x], I[x], −I[y])
    C ← C + A⟨⟩[lin](C, X; I[y], I[y], I[x]) + A⟨⟩[∞](C, C; I[y], I[y], −I[x])
    """
    if isinstance(recipe, Staged):
        raise ValueError(
            f"recipe: found {recipe.name!r}, which chooses between proposals, and a mixture of "
            "proposals is none; use lf.recipes.straight_through"
        )

    def change(slot: str, head: Head) -> Head:
        gamma = self_attention if slot.endswith("_self") else inverse_temperature
        if gamma is None or has_gradient(head.activation):
            return head
        return replace(head, activation=_soft(slot, head, gamma))

    return _named(map_heads(recipe, change), recipe, "softened")


def _soft(slot: str, head: Head, gamma: float) -> Gumbel | Linear | Softmax:
    """Return the activation with this inverse temperature that takes the place of a hard one."""
    if isinstance(head.activation, Gumbel):
        return Gumbel(1 / gamma)
    by_share = isinstance(head.score, DotProduct) and head.query.subspaces == {ASSIGNMENT}
    return Linear() if slot == "decoder_cross" and by_share else Softmax(gamma)


def straight_through(recipe: R, inverse_temperature: float) -> R:
    """Return the recipe with the same forward pass and a gradient for every weight.

    Where a head selects keys, `StraightThrough` uses the derivative of soft-max in the backward
    pass. Circuits of the two recipes give the same centers, bit for bit. The gradient is not the
    derivative of the result, which is zero; it says how the result of soft-max would change.
    With Gumbel attention the soft-max includes the noise (Gumbel with temperature 1/gamma).

    Parameters
    ----------
    recipe : Recipe or Staged
        The recipe.
    inverse_temperature : float
        The inverse temperature of soft-max in the backward pass. The larger, the fewer keys near
        the selected one get a gradient.

    Returns
    -------
    Recipe or Staged
        The recipe, with "_straight_through" after its name.

    See Also
    --------
    softened : Finite temperatures in the forward pass too.
    lloydformer.circuits.activations.StraightThrough : The activation.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> recipe = lf.recipes.straight_through(lf.recipes.lloyd(), 1.0)
    >>> circuit = lf.Circuit(recipe, n_features=1, n_clusters=2, trainable=True)
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> trace = circuit(points, points[:2], n_layers=3)
    >>> trace.centers[-1].flatten().tolist()
    [0.5, 11.0]
    >>> trace.objective[-1].backward()
    >>> all(weight.grad is not None for weight in circuit.parameters())
    True
    """

    def change(slot: str, head: Head) -> Head:
        if has_gradient(head.activation):
            return head
        backward: Gumbel | Softmax = Softmax(inverse_temperature)
        if isinstance(head.activation, Gumbel):
            backward = Gumbel(1 / inverse_temperature)
        return replace(head, activation=StraightThrough(head.activation, backward))

    return _named(map_heads(recipe, change), recipe, "straight_through")


def forward_only(recipe: R) -> R:
    """Return the recipe without straight-through: the activations of the forward pass."""

    def change(slot: str, head: Head) -> Head:
        return replace(head, activation=forward_of(head.activation))

    return map_heads(recipe, change)


def _named(changed: R, before: AnyRecipe, word: str) -> R:
    """Return the changed recipe with a name of its own; one without changes as it was."""
    if changed == before:
        return changed
    algorithm = f"{before.algorithm}, {word.replace('_', '-')}" if before.algorithm else ""
    return replace(changed, name=f"{before.name}_{word}", algorithm=algorithm)
