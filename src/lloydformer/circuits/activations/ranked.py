"""Activations that go by rank: the second best key, the best key for the first query and so on."""

from dataclasses import dataclass, field
from numbers import Integral, Real

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations.contract import NOTHING, Activation, Context, require
from lloydformer.circuits.activations.hard import LimitingSoftmax, one_hot_of_best


@dataclass(frozen=True)
class Ranked:
    r"""All weight on the key of one rank; among equal keys the first one ranks higher.

    `Ranked(0)` is limiting soft-max, `Ranked(1)` what it would be without its choice: the second
    best key. rank None takes the query's own number: the first query gets the best key, the second
    query the second best, and so on, so that no two of them get the same. in_order: they get the
    same keys, but in the order in which the keys stand.
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
            "pass None (each query its own) or an integer from 0",
        )
        alone = self.rank is None or not self.in_order
        require(alone, "in_order", self.in_order, "a single rank has no order: pass rank None")

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

    def lowering(self, reach: float, eps: float) -> float:
        return reach


@dataclass(frozen=True)
class FirstOfEquals:
    """All weight on the first key that is as good as the best one, rounding apart.

    within: keys that are worse by no more than this fraction of the best score are as good.
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

    def lowering(self, reach: float, eps: float) -> float:
        return reach


@dataclass(frozen=True)
class Lots:
    r"""Draws a key with probability $\propto (a^i)^p$ from scores that are not negative.

    The largest of $p \log a^i + g^i$ with standard Gumbel $g$. With power 1 these are the weights
    of linear attention, as Gumbel soft-max draws with those of soft-max. `choice` may be another
    way to take the largest: `Ranked()` draws without replacement, one key for each query.
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
            raise ValueError("seed: found None; lots are drawn by noise, pass an integer seed")
        return self.choice(self.power * scores.log() + context.noise(scores), context)

    def lowering(self, reach: float, eps: float) -> float:
        raise ValueError("activation: lots are drawn from scores that are not negative")
