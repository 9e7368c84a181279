"""Activations that give keys with low scores the weight 0: sparsemax, top-k, norm-max."""

import math
from dataclasses import dataclass
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
    >>> from lloydformer.circuits.activations import TopK
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
    r"""Norm-max: $\arg\max_p \gamma \langle a, p \rangle - \max_i p^i$ over the simplex (eq:nmax).

    The solution is uniform over the m best keys, with the m for which $1/\gamma$ lies between
    $S_{m-1} - (m-1) a_m$ and $S_m - m a_{m+1}$ (a in descending order, $S_m$ its partial sums).
    Exactly one of the two parameters must be given.

    Parameters
    ----------
    inverse_temperature : float or None, default=None
        The paper's $\gamma$, the same for all queries.
    keep : float or None, default=None
        Fraction of a query's cluster that is kept, with keys tied with the last one. Each query
        then has its own $\gamma$.

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
    short = "NMA"

    def __post_init__(self) -> None:
        given = [v for v in (self.inverse_temperature, self.keep) if v is not None]
        require(len(given) == 1, "inverse_temperature, keep", given, "pass exactly one of them")
        if self.inverse_temperature is not None:
            require_positive("inverse_temperature", self.inverse_temperature)
        if self.keep is not None:
            fraction = isinstance(self.keep, Real) and 0 < self.keep <= 1
            require(fraction, "keep", self.keep, "pass a fraction above 0, at most 1")

    @property
    def symbol(self) -> str:
        return f"NM {self.keep or self.inverse_temperature:g}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
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
