"""Activations that give keys with low scores the weight 0: sparsemax, top-k, norm-max."""

import math
from dataclasses import dataclass, field
from numbers import Integral, Real

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    Scores,
    TemperedActivation,
)
from lloydformer.numerics.checks import require, require_positive


@dataclass(frozen=True)
class Sparsemax(TemperedActivation):
    r"""Sparsemax: $\arg\min_p \lVert p - \gamma a \rVert^2$ over the simplex.

    $p = [\gamma a - \tau]_+$, with the threshold $\tau$ that makes the sum 1 (Martins and
    Astudillo, 2016).

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The paper's $\gamma$, positive.

    See Also
    --------
    Softmax : Gives every key a positive weight.
    TopK : Keeps a fixed number of keys.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Sparsemax
    >>> Sparsemax()(torch.tensor([[1.0, 0.5, -4.0]])).tolist()
    [[0.75, 0.25, 0.0]]
    """

    short = "SSMA"
    name = "sparsemax "

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        # relative to the best score, where the weights are: large scores would cost their digits
        z = self.inverse_temperature * (scores - scores.amax(dim=-1, keepdim=True))
        ordered = z.sort(dim=-1, descending=True).values
        counts = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        thresholds = (ordered.cumsum(dim=-1) - 1) / counts  # tau if the best r keys have weight
        support = (ordered > thresholds).sum(dim=-1, keepdim=True)
        return (z - thresholds.gather(-1, support - 1)).clamp(min=0)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return reach.nearest + 1 / self.inverse_temperature


@dataclass(frozen=True)
class TopK(Activation):
    """Soft-max over the m best keys, weight 0 for the rest; keys tied with the m-th stay.

    Parameters
    ----------
    m : int
        Number of keys with a positive weight, 1 or more.
    inverse_temperature : float, default=1.0
        Inverse temperature of the soft-max, positive.

    See Also
    --------
    Sparsemax : Chooses the number of keys by itself.
    lloydformer.recipes.robust : Takes it as `activation`.

    Examples
    --------
    >>> import torch
    >>> from lloydformer import TopK
    >>> TopK(2)(torch.tensor([[1.0, 1.0, 0.0]])).tolist()
    [[0.5, 0.5, 0.0]]
    """

    m: int
    inverse_temperature: float = 1.0
    short = "SSMA"

    def __post_init__(self) -> None:
        whole = isinstance(self.m, Integral) and not isinstance(self.m, bool)
        require(whole and self.m >= 1, "m", self.m, "pass an integer above 0")
        require_positive("inverse_temperature", self.inverse_temperature)

    @property
    def symbol(self) -> str:
        return f"top-{self.m} {self.inverse_temperature:g}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        last = scores.topk(min(self.m, scores.shape[-1]), dim=-1).values[..., -1:]
        kept = scores.masked_fill(scores < last, -math.inf)
        return (self.inverse_temperature * kept).softmax(dim=-1)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return reach.nearest + 2 * math.log(1 / eps) / self.inverse_temperature


@dataclass(frozen=True)
class NormMax(Activation):
    r"""Norm-max: $\arg\max_p \gamma \langle a, p \rangle - \lVert p \rVert_\alpha$ (eq:nmax).

    Over the simplex. For $\alpha = \infty$, the default, the solution is uniform over the m best
    keys, with the m for which $1/\gamma$ lies between
    $S_{m-1} - (m-1) a_m$ and $S_m - m a_{m+1}$ (a in descending order, $S_m$ its partial sums).
    For other $\alpha$ it is proportional to $[\gamma a - \tau]_+^{1/(\alpha - 1)}$, with the $\tau$
    for which the powers $\alpha/(\alpha - 1)$ of the brackets sum to 1. Exactly one of
    `inverse_temperature` and `keep` must be given.

    Parameters
    ----------
    inverse_temperature : float or None, default=None
        The paper's $\gamma$, the same for all queries.
    keep : float or None, default=None
        Fraction of a query's cluster that is kept, with keys tied with the last one. Each query
        then has its own $\gamma$. Needs $\alpha = \infty$.
    alpha : float or None, default=None
        The paper's $\alpha$, above 1; None is infinity. The larger, the more equal the weights.

    See Also
    --------
    TopK : Soft-max over a fixed number of keys.
    lloydformer.recipes.trimmed : The recipe that uses it.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import NormMax
    >>> NormMax(keep=0.5)(torch.tensor([[9.0, 7.0, 4.0, 2.0]])).tolist()
    [[0.5, 0.5, 0.0, 0.0]]
    """

    inverse_temperature: float | None = None
    keep: float | None = None
    alpha: float | None = field(default=None, metadata={"later": True})
    short = "NMA"

    def __post_init__(self) -> None:
        given = [v for v in (self.inverse_temperature, self.keep) if v is not None]
        require(len(given) == 1, "inverse_temperature, keep", given, "pass exactly one of them")
        if self.inverse_temperature is not None:
            require_positive("inverse_temperature", self.inverse_temperature)
        if self.keep is not None:
            fraction = isinstance(self.keep, Real) and 0 < self.keep <= 1
            require(fraction, "keep", self.keep, "pass a fraction above 0, at most 1")
        if self.alpha is not None:
            above = isinstance(self.alpha, Real) and 1 < self.alpha < math.inf
            require(above, "alpha", self.alpha, "pass a finite number above 1, or None (infinity)")
            by_gamma = self.inverse_temperature is not None
            reason = "give inverse_temperature with it, and not keep"
            require(by_gamma, "alpha", self.alpha, reason)

    @property
    def symbol(self) -> str:
        power = "" if self.alpha is None else f", α {self.alpha:g}"
        return f"NM {self.keep or self.inverse_temperature:g}{power}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        if self.alpha is not None and self.inverse_temperature is not None:
            return norm_max(self.inverse_temperature * scores, float(self.alpha))
        ordered = scores.sort(dim=-1, descending=True).values
        if self.keep is None:
            assert self.inverse_temperature is not None
            count = (ends(ordered) <= 1 / self.inverse_temperature).sum(-1, keepdim=True) + 1
        else:
            # scores within the gap are those of the query's own cluster
            size = (ordered > ordered[..., :1] - context.gap).sum(dim=-1, keepdim=True)
            # 0.07 * 100 is above 7 by rounding, and must not keep an eighth key
            count = (self.keep * size.to(torch.float64) - 1e-9).ceil().long().clamp(min=1)
        chosen = (scores >= ordered.gather(-1, count - 1)).to(scores.dtype)
        return chosen / chosen.sum(dim=-1, keepdim=True)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        # With one gamma, a key has weight only if it is less than 1/gamma below the best.
        if self.inverse_temperature is not None:
            return reach.nearest + 1 / self.inverse_temperature
        return 2 * reach.farthest


def norm_max(scores: Float[Tensor, "*b q m"], alpha: float) -> Float[Tensor, "*b q m"]:
    r"""Return $\arg\max_p \langle a, p \rangle - \lVert p \rVert_\alpha$, for a finite $\alpha$.

    Over the simplex. With a multiplier $\tau$ for the sum, the derivative of a positive entry is 0
    where $(p^i / \lVert p \rVert_\alpha)^{\alpha - 1} = a^i - \tau$. Both sides to the power
    $\alpha' = \alpha / (\alpha - 1)$ sum to 1 on the left, which decides $\tau$.
    """
    power = alpha / (alpha - 1)
    z = scores - scores.amax(dim=-1, keepdim=True)
    with torch.no_grad():
        # the best key alone gives 1 at tau = -1, and m equal ones would at -m^(-1/power)
        low = torch.full_like(z[..., :1], -1.0)
        high = torch.full_like(low, -(z.shape[-1] ** (-1 / power)))
        for _ in range(60):  # more than the 53 bits of a float
            middle = (low + high) / 2
            above = (z - middle).clamp(min=0).pow(power).sum(dim=-1, keepdim=True) > 1
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        start = (low + high) / 2
        slope = power * (z - start).clamp(min=0).pow(power - 1).sum(dim=-1, keepdim=True)
    # a step of Newton's method changes nothing but rounding, and has the derivative of tau
    total = (z - start).clamp(min=0).pow(power).sum(dim=-1, keepdim=True)
    threshold = start + (total - 1) / slope
    # 0 to a power below 1 has an infinite derivative, which masked entries must not have
    inside = z > threshold
    brackets = torch.where(inside, z - threshold, 1.0).pow(1 / (alpha - 1))
    weights = torch.where(inside, brackets, 0.0)
    return weights / weights.sum(dim=-1, keepdim=True)


def ends(ordered: Float[Tensor, "*b q m"]) -> Float[Tensor, "*b q less"]:
    r"""Return $S_m - m a_{m+1}$ for m = 1, 2, ...: from this $1/\gamma$ on key m+1 is kept."""
    drops = ordered[..., :1] - ordered  # shifting all scores changes nothing
    counts = torch.arange(1, ordered.shape[-1], device=ordered.device, dtype=ordered.dtype)
    return counts * drops[..., 1:] - drops.cumsum(dim=-1)[..., :-1]


def inverse_temperature_that_keeps(
    ordered: Float[Tensor, "*b q m"], count: int
) -> Float[Tensor, "*b q"]:
    """Return a gamma that keeps `count` keys: 1/gamma is the middle of its interval."""
    borders = torch.nn.functional.pad(ends(ordered), (1, 0))  # the first interval starts at 0
    lower = borders[..., count - 1]
    upper = borders[..., count] if count < ordered.shape[-1] else 2 * lower + 2
    return 2 / (lower + upper)
