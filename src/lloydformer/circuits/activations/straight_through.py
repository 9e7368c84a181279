"""Straight-through: one activation runs forward, the gradient of another one runs backward."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lloydformer.circuits.activations.contract import NOTHING, Context, HeadActivation, Scores
from lloydformer.circuits.activations.dense import Softmax
from lloydformer.numerics.checks import require


class ForwardWithGradientOf(torch.autograd.Function):
    """Return the first tensor; its gradient is passed on to the second one."""

    @staticmethod
    def forward(ctx: Any, forward: Tensor, backward: Tensor) -> Tensor:
        return forward.view_as(forward)  # a tensor of its own: autograd refuses an input as output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0]


@dataclass(frozen=True)
class StraightThrough(HeadActivation):
    """Weights of one activation, with the gradient of another.

    The forward pass is that of `activation`, bit for bit. The backward pass uses the derivative
    of `backward` at the same scores (the straight-through estimator of Bengio, Leonard and
    Courville, 2013). So a head that selects keys can be trained although its weights have no
    derivative.

    Parameters
    ----------
    activation : Activation
        Activation of the forward pass, for example `LimitingSoftmax()`.
    backward : Activation, default=Softmax(1.0)
        Activation whose derivative is used. It needs a gradient, as `Softmax` has.

    Attributes
    ----------
    ties : str or None
        The rule for ties of `activation`, if it has one.

    See Also
    --------
    lloydformer.recipes.straight_through : Puts it around every activation without a gradient.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import LimitingSoftmax, Softmax, StraightThrough
    >>> scores = torch.tensor([[1.0, 0.0]], requires_grad=True)
    >>> weights = StraightThrough(LimitingSoftmax(), Softmax(2.0))(scores)
    >>> weights.tolist()
    [[1.0, 0.0]]
    >>> weights[0, 0].backward()
    >>> scores.grad  # 2 p (1 - p), with the share p = 0.881 of soft-max
    tensor([[ 0.2100, -0.2100]])
    """

    activation: HeadActivation
    backward: HeadActivation = field(default_factory=Softmax)
    short = ""  # that of `activation`

    def __post_init__(self) -> None:
        for name in ("activation", "backward"):
            part = getattr(self, name)
            require(isinstance(part, HeadActivation), name, part, "pass an activation")
        object.__setattr__(self, "short", self.activation.short)

    @property
    def symbol(self) -> str:
        return self.activation.symbol

    @property
    def ties(self) -> str | None:
        """The rule for ties of the forward pass, if it has one.

        See Also
        --------
        lloydformer.Recipe.ties : Uses it.

        Examples
        --------
        >>> from lloydformer.circuits.activations import LimitingSoftmax, StraightThrough
        >>> StraightThrough(LimitingSoftmax("first")).ties
        'first'
        """
        return getattr(self.activation, "ties", None)

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        forward = self.activation(scores.detach(), context)  # its own derivative is not used
        if not (scores.requires_grad and torch.is_grad_enabled()):
            return forward
        weights: Tensor = ForwardWithGradientOf.apply(  # type: ignore[no-untyped-call]
            forward, self.backward(scores, context)
        )
        return weights


def forward_of(activation: HeadActivation) -> HeadActivation:
    """Return the activation of the forward pass."""
    return activation.activation if isinstance(activation, StraightThrough) else activation


def with_forward(activation: HeadActivation, forward: HeadActivation) -> HeadActivation:
    """Return the activation with another forward pass, and the backward pass that it has."""
    if isinstance(activation, StraightThrough):
        return StraightThrough(forward, activation.backward)
    return forward
