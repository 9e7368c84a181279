"""Activations that select keys: the best ones, one of a given rank, or one at random."""

import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal

import torch
from torch import Tensor

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    Scores,
)
from lloydformer.numerics.checks import require, require_fraction, require_positive
from lloydformer.numerics.search_constants import TIE

Ties = Literal["first", "average"]


def one_hot_of_best(scores: Tensor) -> Tensor:
    """Return weight 1 for the key with the largest score, the first one of equals."""
    best = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, best, 1.0)


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

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        if self.ties == "first":
            return one_hot_of_best(scores)
        # the best score is at least this; a score that may reach it within its error counts as best
        certain = (scores - context.tolerance).amax(dim=-1, keepdim=True)
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
        fits = isinstance(self.temperature, Real) and 0 <= self.temperature < math.inf
        repair = "pass 0 (the limit: a sample) or a positive finite number"
        require(fits, "temperature", self.temperature, repair)

    @property
    def symbol(self) -> str:
        return f"GSM {self.temperature:g}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
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


@dataclass(frozen=True)
class Ranked(Activation):
    r"""All weight on the key of one rank; among equal keys the first one ranks higher.

    Parameters
    ----------
    rank : int or None, default=None
        Rank of the key: 0 is the best key, 1 the second best. None uses the number of the query:
        query 0 gets the best key, query 1 the second best, and so on.
    in_order : bool, default=False
        Whether the keys that are selected by `rank=None` are given to the queries in the order of
        the keys instead of the order of their scores.

    See Also
    --------
    LimitingSoftmax : `LimitingSoftmax("first")` is `Ranked(0)`.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Ranked
    >>> Ranked(1)(torch.tensor([[3.0, 9.0, 5.0]])).tolist()
    [[0.0, 0.0, 1.0]]
    """

    rank: int | None = None
    in_order: bool = False
    short = "RSMA"

    def __post_init__(self) -> None:
        whole = isinstance(self.rank, Integral) and not isinstance(self.rank, bool)
        fits = self.rank is None or (whole and self.rank >= 0)
        repair = "pass None (the number of the query) or an integer, 0 or more"
        require(fits, "rank", self.rank, repair)
        alone = self.rank is None or not self.in_order
        require(alone, "in_order", self.in_order, "in_order needs rank=None")

    @property
    def symbol(self) -> str:
        if self.in_order:
            return "ranks in order"
        return "rank" if self.rank is None else f"rank {self.rank}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        order = scores.argsort(dim=-1, descending=True, stable=True)  # (q, m): keys by rank
        queries = torch.arange(scores.shape[-2], device=scores.device)
        ranks = queries if self.rank is None else torch.full_like(queries, self.rank)
        if ranks.max() >= scores.shape[-1]:
            raise ValueError(
                f"rank: found {ranks.max().item()} for {scores.shape[-1]} keys; the last one is "
                f"{scores.shape[-1] - 1}"
            )
        if self.in_order:
            order = order[..., : scores.shape[-2]].sort(dim=-1).values
        key = order.gather(-1, ranks[:, None].expand(*scores.shape[:-1], 1))
        return torch.zeros_like(scores).scatter_(-1, key, 1.0)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return reach.farthest


@dataclass(frozen=True)
class FirstOfEquals(Activation):
    """All weight on the first key whose score equals the best one except for rounding.

    Parameters
    ----------
    within : float, default=1e-9
        Scores that are lower by no more than this fraction of the best score count as equal.

    See Also
    --------
    LimitingSoftmax : Selects by exact comparison.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import FirstOfEquals
    >>> scores = torch.tensor([[-5.0, -4.0 - 1e-12, -4.0]], dtype=torch.float64)
    >>> FirstOfEquals()(scores).tolist()
    [[0.0, 1.0, 0.0]]
    """

    within: float = TIE
    short = "LSMA"

    def __post_init__(self) -> None:
        require_fraction("within", self.within)

    @property
    def symbol(self) -> str:
        return f"∞ within {self.within:g}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        best = scores.amax(dim=-1, keepdim=True)
        return one_hot_of_best((scores >= best - self.within * best.abs()).to(scores.dtype))

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return reach.farthest


@dataclass(frozen=True)
class Lots(Activation):
    r"""Draw a key with probability $\propto (a^i)^p$ from non-negative scores.

    The key with the largest $p \log a^i + g^i$, with standard Gumbel $g$. With power 1 the
    probabilities are the weights of linear attention.

    Parameters
    ----------
    power : float, default=1.0
        The power $p$, positive.
    choice : LimitingSoftmax or Ranked, default=LimitingSoftmax("first")
        How the largest value is selected. `Ranked()` draws without replacement, one key for each
        query.

    See Also
    --------
    Gumbel : Draws with the probabilities of soft-max.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Context, Lots
    >>> context = Context(noise=torch.zeros_like)
    >>> Lots()(torch.tensor([[1.0, 4.0, 2.0]]), context).tolist()
    [[0.0, 1.0, 0.0]]
    """

    power: float = 1.0
    choice: Activation = field(default_factory=lambda: LimitingSoftmax("first"))
    short = "GLinA"

    def __post_init__(self) -> None:
        require_positive("power", self.power)
        fits = isinstance(self.choice, LimitingSoftmax | Ranked)
        require(fits, "choice", self.choice, 'pass LimitingSoftmax("first") or Ranked()')

    @property
    def symbol(self) -> str:
        return f"GLin {self.power:g} {self.choice.symbol}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        if context.noise is None:
            raise ValueError("seed: found None; this attention draws noise, pass an integer seed")
        return self.choice(self.power * scores.log() + context.noise(scores), context)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError("activation: Lots needs non-negative scores; use Gumbel")
