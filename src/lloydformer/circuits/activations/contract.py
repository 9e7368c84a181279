"""The protocol of activations, and the context that they receive with the scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Protocol, runtime_checkable

from torch import Tensor


@dataclass(frozen=True)
class Context:
    """What an activation may use in addition to the scores.

    Parameters
    ----------
    gap : float, default=inf
        Scores that are lower than a query's best by more than this belong to other clusters.
    tolerance : float, default=0.0
        Maxima of limiting soft-max that differ by no more than this count as equal.
    noise : callable or None, default=None
        Takes scores of shape (..., q, m) and returns standard Gumbel noise of this shape.

    See Also
    --------
    Activation : Receives a context.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Context, LimitingSoftmax
    >>> LimitingSoftmax()(torch.tensor([[1.0, 0.95, 0.5]]), Context(tolerance=0.1)).tolist()
    [[0.5, 0.5, 0.0]]
    """

    gap: float = math.inf
    tolerance: float = 0.0
    noise: Callable[[Tensor], Tensor] | None = None


NOTHING = Context()
"""The default context: nothing in addition to the scores."""


@runtime_checkable
class HeadActivation(Protocol):
    """Protocol of what a head needs of its activation; `Activation` adds `lowering`."""

    short: str

    @property
    def symbol(self) -> str:
        """The sign in equations.

        See Also
        --------
        lloydformer.Recipe.equation : Uses it.

        Examples
        --------
        >>> from lloydformer.circuits.activations import Sparsemax
        >>> Sparsemax(0.5).symbol
        'sparsemax 0.5'
        """
        ...

    def __call__(self, scores: Tensor, context: Context = NOTHING) -> Tensor: ...


@runtime_checkable
class Activation(HeadActivation, Protocol):
    """Protocol of a part that turns the scores of each query into weights of the keys.

    The last axis of scores and weights is the keys. Any frozen dataclass with these members is
    an activation. Only a decoder whose separation is chosen from the data needs `lowering`: in
    other heads an activation of your own may leave it out.

    Parameters
    ----------
    *args, **kwargs
        Not used: a protocol has no constructor.

    Attributes
    ----------
    short : str
        The name in the paper's table tab:comp-alg.
    symbol : str
        The sign in equations.

    See Also
    --------
    lloydformer.circuits.scores.Score : The part before it in a head.

    Examples
    --------
    >>> from lloydformer.circuits.activations import Activation, Softmax
    >>> isinstance(Softmax(), Activation)
    True
    """

    def lowering(self, reach: float, eps: float) -> float:
        """Return by how much the scores of other clusters' points must be lowered.

        Points whose scores are lowered by more than this have no weight, or at most eps^2 of the
        weight of a cluster's nearest point.

        Parameters
        ----------
        reach : float
            Upper bound of the squared distance of a cluster's own points.
        eps : float
            Relative precision of the scores.

        Returns
        -------
        float
            The difference of scores.

        Raises
        ------
        ValueError
            If the activation gives other clusters' points a weight in any case.

        See Also
        --------
        lloydformer.Recipe.separation : Uses it.

        Examples
        --------
        >>> from lloydformer.circuits.activations import Sparsemax
        >>> Sparsemax(0.5).lowering(reach=50.0, eps=1e-16)
        52.0
        """
        ...


def require(condition: bool, argument: str, found: object, repair: str) -> None:
    """Raise a ValueError with argument, value found and repair, unless the condition holds."""
    if not condition:
        raise ValueError(f"{argument}: found {found!r}; {repair}")


def positive(argument: str, value: float) -> None:
    """Raise a ValueError unless the value is a positive finite number."""
    require(
        isinstance(value, Real) and not isinstance(value, bool) and 0 < value < math.inf,
        argument,
        value,
        "pass a positive finite number",
    )
