"""The protocol of activations, and the context that they receive with the scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.checks import require_positive

# A number, or a tensor of one number for each problem of a batch, (..., 1, 1).
Amount = float | Tensor
# Scores of queries and keys, or weights of the keys.
Scores = Float[Tensor, "*b q m"]


class Reach(NamedTuple):
    """The squared distances that a separation depends on.

    Parameters
    ----------
    nearest : float or torch.Tensor
        Upper bound, over the clusters, of the squared distance of a cluster's nearest own point
        to its center. A tensor has one number for each problem of a batch, (..., 1, 1).
    farthest : float or torch.Tensor
        Upper bound of the squared distances of points to their own centers.

    See Also
    --------
    Activation.lowering : Depends on it.

    Examples
    --------
    >>> from lloydformer.circuits.activations import Reach, Sparsemax
    >>> Sparsemax(0.5).lowering(Reach(nearest=1.0, farthest=50.0), eps=1e-16)
    3.0
    """

    nearest: Amount
    farthest: Amount


@dataclass(frozen=True)
class Context:
    """The inputs of an activation in addition to the scores.

    Parameters
    ----------
    gap : float or torch.Tensor, default=inf
        Scores that are lower than a query's best by more than this belong to other clusters. A
        tensor has one number for each problem of a batch, (..., 1, 1).
    tolerance : float or torch.Tensor, default=0.0
        Uncertainty of the scores, one number or one for each score. Scores that may both be the
        largest count as equal in limiting soft-max.
    log_scores : torch.Tensor or None, default=None
        Logarithms of the scores, in float64, for scores that are too small for a float.
    noise : callable or None, default=None
        Takes scores of shape (..., q, m) and returns standard Gumbel noise of this shape.

    See Also
    --------
    Activation : Receives a context.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Context, LimitingSoftmax
    >>> LimitingSoftmax()(torch.tensor([[1.0, 0.95, 0.5]]), Context(tolerance=0.05)).tolist()
    [[0.5, 0.5, 0.0]]
    """

    gap: float | Tensor = math.inf
    tolerance: float | Tensor = 0.0
    log_scores: Tensor | None = None
    noise: Callable[[Tensor], Tensor] | None = None


NOTHING = Context()


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

    def lowering(self, reach: Reach, eps: float) -> Amount:
        """Return by how much the scores of other clusters' points must be lowered.

        Points whose scores are lowered by more than this have no weight, or at most eps^2 of the
        weight of a cluster's nearest point.

        Parameters
        ----------
        reach : Reach
            The squared distances of a cluster's nearest and farthest points.
        eps : float
            Relative precision of the scores.

        Returns
        -------
        float or torch.Tensor
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
        >>> from lloydformer.circuits.activations import NormMax, Reach
        >>> NormMax(keep=0.9).lowering(Reach(nearest=1.0, farthest=50.0), eps=1e-16)
        100.0
        """
        ...


@dataclass(frozen=True)
class TemperedActivation(Activation):
    """Base of activations of scores times an inverse temperature, the paper's gamma.

    `name` comes before the number in the symbol.
    """

    inverse_temperature: float = 1.0
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        require_positive("inverse_temperature", self.inverse_temperature)

    @property
    def symbol(self) -> str:
        return f"{self.name}{self.inverse_temperature:g}"
