"""Activations that give every key a weight: soft-max, log-soft-max, linear, identity."""

import math
from dataclasses import dataclass

import torch

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    Scores,
    TemperedActivation,
)


@dataclass(frozen=True)
class Softmax(TemperedActivation):
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

    short = "SMA"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        return (self.inverse_temperature * scores).softmax(dim=-1)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        # Not exact: another point keeps eps^2 of the weight of a cluster's nearest point.
        return reach.nearest + 2 * math.log(1 / eps) / self.inverse_temperature


@dataclass(frozen=True)
class LogSoftmax(TemperedActivation):
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

    short = "LogSMA"
    name = "log "

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
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

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        total = scores.sum(dim=-1, keepdim=True)
        if context.log_scores is None:
            return scores / total
        logs, eps = context.log_scores, torch.finfo(scores.dtype).eps
        # Scores that are not the exponentials of their logarithms were patched on the way. Shares
        # are at most 1, and soft-max rounds them by a few eps: 16 eps is no rounding.
        patched = ((scores - logs.exp()).abs() > 16 * eps).any(dim=-1).any(dim=-1)
        # With a mean score below sqrt(eps), half of the digits of the weights would be rounding.
        faint = (scores.mean(dim=-1, keepdim=True) < eps**0.5) & ~patched[..., None, None]
        # the denominator is 1 where it is not used: 0/0 would have no gradient
        direct = scores / total.masked_fill(faint, 1.0)
        return torch.where(faint, logs.softmax(dim=-1).to(scores.dtype), direct)

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

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        return scores

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError("activation: identity attention does not give weights of points")
