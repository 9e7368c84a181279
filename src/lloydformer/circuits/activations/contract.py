"""What an activation is, and what it may know beside the scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Protocol, runtime_checkable

from torch import Tensor


@dataclass(frozen=True)
class Context:
    """What a head knows beside its scores.

    gap: scores further than this below a query's best belong to other clusters.
    tolerance: maxima of limiting soft-max closer than this count as equal.
    noise: draws standard Gumbel noise of a shape (..., q, m).
    """

    gap: float = math.inf
    tolerance: float = 0.0
    noise: Callable[[Tensor], Tensor] | None = None


NOTHING = Context()
"""A head that knows nothing but its scores."""


@runtime_checkable
class Activation(Protocol):
    """Turns the scores of each query into weights of the keys; the last axis is the keys.

    short: its name in the paper's table tab:comp-alg. symbol: its sign in equations.
    """

    short: str

    @property
    def symbol(self) -> str: ...

    def __call__(self, scores: Tensor, context: Context = NOTHING) -> Tensor: ...

    def lowering(self, reach: float, eps: float) -> float:
        """How far below its own points' scores a cluster's other points must be.

        Own squared distances are at most `reach`; scores have relative precision `eps`.
        """
        ...


def require(condition: bool, argument: str, found: object, repair: str) -> None:
    """The one form of every complaint about a part: argument, value found, repair."""
    if not condition:
        raise ValueError(f"{argument}: found {found!r}; {repair}")


def positive(argument: str, value: float) -> None:
    """Temperatures and their inverses are positive and finite."""
    require(
        isinstance(value, Real) and not isinstance(value, bool) and 0 < value < math.inf,
        argument,
        value,
        "pass a positive finite number",
    )
