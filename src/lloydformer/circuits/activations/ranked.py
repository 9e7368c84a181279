"""Activations by rank, the first of nearly equal keys, and random draws of keys."""

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
    require,
)
from lloydformer.circuits.activations.hard import LimitingSoftmax, one_hot_of_best


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
        require(
            self.rank is None or (whole and self.rank >= 0),
            "rank",
            self.rank,
            "pass None (the number of the query) or an integer, 0 or more",
        )
        alone = self.rank is None or not self.in_order
        require(alone, "in_order", self.in_order, "in_order needs rank=None")

    @property
    def symbol(self) -> str:
        if self.in_order:
            return "ranks in order"
        return "rank" if self.rank is None else f"rank {self.rank}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
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

    within: float = 1e-9
    short = "LSMA"

    def __post_init__(self) -> None:
        share = isinstance(self.within, Real) and 0 <= self.within < 1
        require(share, "within", self.within, "pass a fraction from 0 to below 1")

    @property
    def symbol(self) -> str:
        return f"∞ within {self.within:g}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
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
        positive = isinstance(self.power, Real) and 0 < self.power < float("inf")
        require(positive, "power", self.power, "pass a positive finite number")
        require(
            isinstance(self.choice, LimitingSoftmax | Ranked),
            "choice",
            self.choice,
            'pass LimitingSoftmax("first") or Ranked()',
        )

    @property
    def symbol(self) -> str:
        return f"GLin {self.power:g} {self.choice.symbol}"

    def __call__(
        self, scores: Float[Tensor, "*b q m"], context: Context = NOTHING
    ) -> Float[Tensor, "*b q m"]:
        if context.noise is None:
            raise ValueError("seed: found None; this attention draws noise, pass an integer seed")
        return self.choice(self.power * scores.log() + context.noise(scores), context)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        raise ValueError("activation: Lots needs non-negative scores; use Gumbel")
