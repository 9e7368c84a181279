"""Activations in which every key has a say: soft-max, linear, identity."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import NOTHING, Context, positive


@dataclass(frozen=True)
class Softmax:
    r"""Soft-max with inverse temperature: $\sigma_\gamma(a)^i \propto \exp(\gamma a^i)$ (eq:smax).

    Solves $\max_p \gamma \langle a, p \rangle - \sum_i p^i \log p^i$ over the simplex.
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
        """Never exact in theory; here what leaks is eps^2 of a cluster's nearest point."""
        return reach + 2 * math.log(1 / eps) / self.inverse_temperature


@dataclass(frozen=True)
class LogSoftmax:
    r"""$\log \sigma_\gamma(a)^i = \gamma a^i - \log \sum_j \exp(\gamma a^j)$."""

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
        raise ValueError("activation: logarithms are not a weighting of points")


@dataclass(frozen=True)
class Linear:
    r"""Linear attention: $\sigma_{lin}(a)^i = a^i / \sum_j a^j$; 0/0 where all scores are 0."""

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
class Identity:
    r"""$\sigma_I(a) = a$: the scores themselves are the weights (eq rob update)."""

    short = "IdA"
    symbol = "I"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        return scores

    def lowering(self, reach: float, eps: float) -> float:
        raise ValueError("activation: identity attention is not a weighting of points")
