"""Activations that pick the best keys: limiting soft-max and Gumbel soft-max."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    require,
)

Ties = Literal["first", "average"]


def one_hot_of_best(scores: Tensor) -> Tensor:
    """Return weight 1 for the key with the largest score, the first one of equals."""
    best = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter_(-1, best, 1.0)


@dataclass(frozen=True)
class LimitingSoftmax(Activation):
    r"""Limiting soft-max $\lim_{\gamma\to\infty} \sigma_\gamma$: all weight on the best keys.

    Parameters
    ----------
    ties : {"first", "average"}, default="average"
        "average" splits the weight evenly over the best keys, as the paper does (averaging hard
        attention). Scores that may be the best within their `Context.tolerance` count as equal
        (docs/errata.md, 7). "first" gives it to the first one, as argmin does (leftmost hard
        attention).

    See Also
    --------
    Softmax : Soft-max at a finite temperature.
    Gumbel : Limiting soft-max of scores with noise.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import LimitingSoftmax
    >>> scores = torch.tensor([[1.0, 3.0, 3.0]])
    >>> LimitingSoftmax()(scores).tolist(), LimitingSoftmax("first")(scores).tolist()
    ([[0.0, 0.5, 0.5]], [[0.0, 1.0, 0.0]])
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
        certain = (scores - context.tolerance).amax(dim=-1, keepdim=True)  # the best is not below
        chosen = (scores + context.tolerance >= certain).to(scores.dtype)
        return chosen / chosen.sum(dim=-1, keepdim=True)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return reach.nearest


@dataclass(frozen=True)
class Gumbel(Activation):
    r"""Gumbel soft-max: $p^i \propto \exp((a^i + g^i) / \lambda)$ with standard Gumbel $g$.

    Parameters
    ----------
    temperature : float, default=0.0
        The temperature $\lambda$. At 0, the limit, one key is drawn with probability
        $\propto \exp(a^i)$ (alg:rnd-kmeds).

    See Also
    --------
    LimitingSoftmax : The same without noise, at temperature 0.
    lloydformer.recipes.medoids : The recipe that uses it.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Context, Gumbel
    >>> noise = torch.tensor([[0.0, 1.5]])
    >>> Gumbel()(torch.tensor([[1.0, 0.0]]), Context(noise=lambda scores: noise)).tolist()
    [[0.0, 1.0]]
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

    def lowering(self, reach: Reach, eps: float) -> Amount:
        # Gumbel noise of 52 bits lies in (-3.7, 36.8): beyond this, no other point is drawn.
        # At a positive temperature the weight of other points is at most eps^2, but never 0.
        return reach.nearest + 41.0 + 2 * math.log(1 / eps) * self.temperature
