"""Activations that pick the best keys: limiting soft-max and Gumbel soft-max."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import NOTHING, Context, require

Ties = Literal["first", "average"]


def one_hot_of_best(scores: Tensor) -> Tensor:
    """Weight 1 on the best key, the first one where several are best."""
    best = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter_(-1, best, 1.0)


@dataclass(frozen=True)
class LimitingSoftmax:
    r"""$\sigma_\infty = \lim_{\gamma\to\infty} \sigma_\gamma$: all weight on the best keys.

    ties "average" splits it evenly over them, as the paper does (averaging hard attention);
    ties "first" gives it to the first one, as argmin does (leftmost hard attention).
    Averaging counts keys within `context.tolerance` of the best as equal (docs/errata.md, 7).
    """

    ties: Ties = "average"
    short = "LSMA"
    symbol = "∞"

    def __post_init__(self) -> None:
        require(self.ties in ("first", "average"), "ties", self.ties, 'pass "first" or "average"')

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        if self.ties == "first":
            return one_hot_of_best(scores)
        best = scores.amax(dim=-1, keepdim=True)
        chosen = (scores >= best - context.tolerance).to(scores.dtype)
        return chosen / chosen.sum(dim=-1, keepdim=True)

    def lowering(self, reach: float, eps: float) -> float:
        return reach


@dataclass(frozen=True)
class Gumbel:
    r"""Gumbel soft-max: $p^i \propto \exp((a^i + g^i) / \lambda)$ with standard Gumbel $g$.

    At temperature 0, the limit, it is a sample: one key drawn with probability
    $\propto \exp(a^i)$ (alg:rnd-kmeds).
    """

    temperature: float = 0.0
    short = "GSMA"

    def __post_init__(self) -> None:
        require(
            isinstance(self.temperature, Real) and 0 <= self.temperature < math.inf,
            "temperature",
            self.temperature,
            "pass 0 (the limit: a sample) or a positive finite number",
        )

    @property
    def symbol(self) -> str:
        return f"GSM {self.temperature:g}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        if context.noise is None:
            raise ValueError("seed: found None; Gumbel attention draws noise, pass an integer seed")
        perturbed = scores + context.noise(scores)
        if self.temperature == 0:
            return one_hot_of_best(perturbed)
        return (perturbed / self.temperature).softmax(dim=-1)

    def lowering(self, reach: float, eps: float) -> float:
        """Gumbel draws with 52 bits lie in (-3.7, 36.8): beyond this no outsider is drawn.

        With a temperature an outsider's share is never 0; here it is at most eps^2.
        """
        return reach + 41.0 + 2 * math.log(1 / eps) * self.temperature
