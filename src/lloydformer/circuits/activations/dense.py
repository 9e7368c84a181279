"""Activations that give every key a weight: soft-max, log-soft-max, linear, identity."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    positive,
)


@dataclass(frozen=True)
class Softmax(Activation):
    r"""Soft-max with inverse temperature: $\sigma_\gamma(a)^i \propto \exp(\gamma a^i)$ (eq:smax).

    Solves $\max_p \gamma \langle a, p \rangle - \sum_i p^i \log p^i$ over the simplex.

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The paper's $\gamma$, positive.

    See Also
    --------
    LimitingSoftmax : The limit for an infinite inverse temperature.

    Examples
    --------
    >>> import math, torch
    >>> from lloydformer.circuits.activations import Softmax
    >>> Softmax(math.log(3))(torch.tensor([[1.0, 0.0]], dtype=torch.float64)).round(decimals=9)
    tensor([[0.7500, 0.2500]], dtype=torch.float64)
    """

    inverse_temperature: float = 1.0
    short = "SMA"

    def __post_init__(self) -> None:
        positive("inverse_temperature", self.inverse_temperature)

    @property
    def symbol(self) -> str:
        return f"{self.inverse_temperature:g}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        return (self.inverse_temperature * scores).softmax(dim=-1)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        # Not exact: another point keeps eps^2 of the weight of a cluster's nearest point.
        return reach.nearest + 2 * math.log(1 / eps) / self.inverse_temperature


@dataclass(frozen=True)
class LogSoftmax(Activation):
    r"""Logarithm of soft-max: $\gamma a^i - \log \sum_j \exp(\gamma a^j)$.

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The inverse temperature $\gamma$, positive.

    See Also
    --------
    Softmax : Its exponential.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import LogSoftmax
    >>> LogSoftmax()(torch.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    inverse_temperature: float = 1.0
    short = "LogSMA"

    def __post_init__(self) -> None:
        positive("inverse_temperature", self.inverse_temperature)

    @property
    def symbol(self) -> str:
        return f"log {self.inverse_temperature:g}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        return (self.inverse_temperature * scores).log_softmax(dim=-1)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError("activation: logarithms are not weights of points; use Softmax")


@dataclass(frozen=True)
class Linear(Activation):
    r"""Linear attention: $\sigma_{lin}(a)^i = a^i / \sum_j a^j$.

    Weights are 0/0, not a number, if all scores are 0. Where scores are shares of soft-max that are
    too small for a float, `Context.log_scores` gives the weights instead.

    See Also
    --------
    Identity : Scores that are not normalised.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Linear
    >>> Linear()(torch.tensor([[3.0, 1.0]])).tolist()
    [[0.75, 0.25]]
    """

    short = "LinA"
    symbol = "lin"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        total = scores.sum(dim=-1, keepdim=True)
        if context.log_scores is None:
            return scores / total
        faint = self._faint(scores, context.log_scores)
        weights = context.log_scores.softmax(dim=-1).to(scores.dtype)
        return torch.where(faint, weights, scores / total.masked_fill(faint, 1.0))

    def _faint(self, scores: Tensor, logs: Tensor) -> Tensor:
        """Return which queries have a mean score below sqrt(eps), whose digits are rounding.

        None if a score is not the exponential of its logarithm: it was patched on the way.
        """
        eps = torch.finfo(scores.dtype).eps
        patched = ((scores - logs.exp()).abs() > 16 * eps).any(dim=-1).any(dim=-1)
        return (scores.mean(dim=-1, keepdim=True) < eps**0.5) & ~patched[..., None, None]

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError(
            "activation: linear attention cannot keep clusters apart by a separation; "
            "use Sparsemax, Softmax, TopK or NormMax"
        )


@dataclass(frozen=True)
class Identity(Activation):
    r"""Identity attention: the scores are the weights, $\sigma_I(a) = a$ (eq rob update).

    See Also
    --------
    Linear : Normalised scores.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Identity
    >>> Identity()(torch.tensor([[3.0, -1.0]])).tolist()
    [[3.0, -1.0]]
    """

    short = "IdA"
    symbol = "I"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        return scores

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError("activation: identity attention does not give weights of points")
