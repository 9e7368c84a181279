"""Gradients of circuits: a warning where weights get none, and recipes whose weights all get one.

The weights of limiting soft-max do not change with the scores, except where they jump. So nothing
flows back through them into queries and keys; values get a gradient in any case. `softened` has
finite temperatures instead, `straight_through` the gradient of soft-max in the backward pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lloydformer.circuits.activations import Context, Gumbel, Linear, Softmax, StraightThrough
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.heads import Attention, Head
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import AnyRecipe, Stage, Staged
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.user_warnings import warn_user

# Names that the text of the warning lists, so that it stays readable: a staged circuit
# may have many (188 of a relocation). `NoGradientWarning.names` has all of them.
_LISTED = 20

R = TypeVar("R", bound=AnyRecipe)


class NoGradientWarning(UserWarning):
    """Weights of a circuit with `trainable=True` that no gradient reaches.

    Parameters
    ----------
    names : sequence of str
        Names of these weights, as in `Circuit.named_parameters()`.
    n_weights : int
        Number of weights of the circuit, with these.

    Attributes
    ----------
    names : tuple of str
        Names of these weights. The text of the warning has the first 20 of them.

    See Also
    --------
    lloydformer.recipes.softened : Finite temperatures in place of hard choices.
    lloydformer.recipes.straight_through : Hard choices with the gradient of soft-max.

    Examples
    --------
    >>> import warnings, lloydformer as lf
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     circuit = lf.Circuit(lf.recipes.soft(), n_features=2, n_clusters=3, trainable=True)
    >>> [name.removeprefix("layers.0.") for name in caught[0].message.names]
    ['encoder_self.query', 'encoder_self.key', 'decoder_self.query', 'decoder_self.key']
    """

    def __init__(self, names: Sequence[str], n_weights: int) -> None:
        self.names = tuple(names)
        listed = ", ".join(self.names[:_LISTED])
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        super().__init__(
            f"trainable: {len(names)} of {n_weights} weights get no gradient: {listed}{more}. "
            "Their heads select keys, and a selection does not change with the scores. To train "
            "them too, pass lf.recipes.softened(recipe, inverse_temperature) or "
            "lf.recipes.straight_through(recipe, inverse_temperature); docs/learning.md compares "
            "the two"
        )


def has_gradient(activation: HeadActivation) -> bool:
    """Return whether weights of keys change smoothly with the scores, somewhere.

    Found by differentiation of the activation itself, at scores of very different sizes without
    ties: where soft-max is saturated at one size, it is not at another. An activation that does
    not accept these scores (it needs more keys, say) counts as having a gradient.
    """
    # circuits may be made while gradients are off, which says nothing about the activation
    with torch.inference_mode(False), torch.enable_grad():
        scores = _varied_scores().requires_grad_()
        try:
            weights = activation(scores, Context(noise=torch.zeros_like))
        except (ValueError, RuntimeError):
            return True
        if not weights.requires_grad:
            return False
        # weights often sum to 1, and the gradient of their sum is then 0: weigh them differently
        (gradient,) = torch.autograd.grad(weights, scores, _varied_scores())
    return bool(gradient.nan_to_num().any())


def _varied_scores() -> Tensor:
    """Return positive scores without ties, (25, 2, 64): 25 sizes from 1e-12 to 1e12, 2 queries."""
    # multiples of the golden ratio modulo 1 are all different, and in no order
    sizes = torch.logspace(-12, 12, 25, dtype=torch.float64, device="cpu")
    keys = torch.arange(1, 129, dtype=torch.float64, device="cpu").mul(0.6180339887).frac()
    return sizes[:, None, None] * keys.view(2, 64)


def warn_without_gradient(circuit: nn.Module) -> None:
    """Warn the caller of the circuit's constructor if some of its parameters get no gradient.

    Those are queries and keys of heads that select keys.
    """
    names = [
        f"{place}.{name}"
        for place, module in circuit.named_modules()
        if isinstance(module, Attention) and not has_gradient(module.head.activation)
        for name, _ in module.named_parameters(recurse=False)
        if name.startswith(("query", "key"))
    ]
    if names:
        count = sum(1 for _ in circuit.parameters())
        warn_user(NoGradientWarning(names, count))


def map_heads(recipe: R, change: Callable[[str, Head], Head]) -> R:
    """Return the recipe with every head changed, including heads that share a slot.

    change: takes the slot of a head, or the name of its stage, and the head.
    """
    if isinstance(recipe, Recipe):
        heads: dict[str, Any] = {}
        for slot in recipe.slots:
            head: Head = getattr(recipe, slot)
            beside = tuple(change(slot, other) for other in head.beside)
            heads[slot] = replace(change(slot, head), beside=beside)
        return replace(recipe, **heads)

    def change_stage(stage: Stage) -> Stage:
        reads = [replace(read, head=change(stage.name, read.head)) for read in stage.reads]
        return replace(stage, reads=tuple(reads))

    sublayers = [
        replace(part, stages=tuple(map(change_stage, part.stages))) for part in recipe.sublayers
    ]
    return replace(recipe, sublayers=tuple(sublayers))


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
            f"recipe: found {recipe.name!r}, which chooses between proposals and cannot be "
            "softened; use lf.recipes.straight_through"
        )

    def change(slot: str, head: Head) -> Head:
        gamma = self_attention if slot.endswith("_self") else inverse_temperature
        if gamma is None or has_gradient(head.activation):
            return head
        if isinstance(head.activation, Gumbel):
            return replace(head, activation=Gumbel(1 / gamma))
        by_share = isinstance(head.score, DotProduct) and head.query.subspaces == {ASSIGNMENT}
        soft = Linear() if slot == "decoder_cross" and by_share else Softmax(gamma)
        return replace(head, activation=soft)

    return _rename(map_heads(recipe, change), recipe, "softened")


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
    softened : Finite temperatures also in the forward pass.
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

    return _rename(map_heads(recipe, change), recipe, "straight_through")


def forward_only(recipe: R) -> R:
    """Return the recipe without straight-through: the activations of the forward pass."""

    def change(slot: str, head: Head) -> Head:
        return replace(head, activation=forward_of(head.activation))

    return map_heads(recipe, change)


def _rename(changed: R, before: AnyRecipe, word: str) -> R:
    """Return the changed recipe with a name of its own; one without changes as it was."""
    if changed == before:
        return changed
    algorithm = f"{before.algorithm}, {word.replace('_', '-')}" if before.algorithm else ""
    return replace(changed, name=f"{before.name}_{word}", algorithm=algorithm)
