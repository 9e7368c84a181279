"""Which weights of a trainable circuit get no gradient, and a warning that names them.

The weights of limiting soft-max do not change with the scores, except where they jump. So nothing
flows back through them into queries and keys; values get a gradient in any case.
"""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lloydformer.circuits.activations import Context
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.heads import Attention

_LISTED = 20
"""Names of weights that the text of the warning lists."""


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
    """Whether weights of keys change smoothly with the scores, somewhere.

    Found by differentiation of the activation itself, at scores of very different sizes without
    ties: where soft-max is saturated at one size, it is not at another. An activation that does
    not accept these scores (it needs more keys, say) counts as having a gradient.
    """
    with torch.inference_mode(False), torch.enable_grad():
        scores = _scores().requires_grad_()
        try:
            weights = activation(scores, Context(noise=torch.zeros_like))
        except (ValueError, RuntimeError):
            return True
        if not weights.requires_grad:
            return False
        (gradient,) = torch.autograd.grad(weights, scores, _scores())
    return bool(gradient.nan_to_num().any())


def _scores() -> Tensor:
    """Positive scores without ties, (25, 2, 64): 25 sizes from 1e-12 to 1e12, 2 queries."""
    sizes = torch.logspace(-12, 12, 25, dtype=torch.float64, device="cpu")
    keys = torch.arange(1, 129, dtype=torch.float64, device="cpu").mul(0.6180339887).frac()
    return sizes[:, None, None] * keys.view(2, 64)


def weights_without_gradient(circuit: nn.Module) -> list[str]:
    """Return the names of parameters that no gradient reaches: queries and keys of hard heads."""
    return [
        f"{place}.{name}"
        for place, module in circuit.named_modules()
        if isinstance(module, Attention) and not has_gradient(module.head.activation)
        for name, _ in module.named_parameters(recurse=False)
        if name.startswith(("query", "key"))
    ]


def warn_without_gradient(circuit: nn.Module) -> None:
    """Warn the caller of the circuit's constructor if some of its parameters get no gradient."""
    if names := weights_without_gradient(circuit):
        count = sum(1 for _ in circuit.parameters())
        warnings.warn(NoGradientWarning(names, count), stacklevel=3)
