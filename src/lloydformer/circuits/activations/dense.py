"""Activations that give every key a weight: soft-max, log-soft-max, linear, identity."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import NOTHING, Activation, Context, positive


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

    def lowering(self, reach: float, eps: float) -> float:
        # Not exact: another point keeps eps^2 of the weight of a cluster's nearest point.
        return reach + 2 * math.log(1 / eps) / self.inverse_temperature


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

    def lowering(self, reach: float, eps: float) -> float:
        raise ValueError("activation: logarithms are not weights of points; use Softmax")


@dataclass(frozen=True)
class Linear(Activation):
    r"""Linear attention: $\sigma_{lin}(a)^i = a^i / \sum_j a^j$.

    Weights are 0/0, not a number, if all scores are 0.

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
        return scores / scores.sum(dim=-1, keepdim=True)

    def lowering(self, reach: float, eps: float) -> float:
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

    def lowering(self, reach: float, eps: float) -> float:
        raise ValueError("activation: identity attention does not give weights of points")
