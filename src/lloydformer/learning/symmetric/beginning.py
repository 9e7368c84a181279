"""Where training begins: heads that look sharply and softly, each for its part of the way."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.symmetric.numbers import INVARIANTS, Numbers
from lloydformer.learning.symmetric.settings import SymmetricRun

_NOISE = 0.1
_SHARPNESS = (0.7, 12.0)
"""Of the softest head and the sharpest, with the mean squared distance as the unit."""


def present(numbers: Numbers, n_heads: int) -> Float[Tensor, " p"]:
    """1 for the weights of the first heads, 0 for those of heads that a run does not have."""
    has = (torch.arange(numbers.n_heads) < n_heads).float()
    live = torch.ones(numbers.count)
    for name, size in numbers.sizes.items():
        if name == "belonging":
            live[numbers.rows(name)] = torch.outer(has, has).flatten()
        elif size == numbers.n_heads and not name.startswith("apart"):
            live[numbers.rows(name)] = has
    return live[:, None].expand(-1, len(INVARIANTS)).flatten()


def begin(numbers: Numbers, run: SymmetricRun) -> Float[Tensor, " p"]:
    """A soft Lloyd step with some noise, that depends on no invariant yet."""
    generator = torch.Generator().manual_seed(run.seed)
    constant = _NOISE * torch.randn(numbers.count, generator=generator)
    soft, sharp = map(math.log, _SHARPNESS)
    heads = torch.linspace(soft, sharp, run.n_heads) if run.n_heads > 1 else (soft + sharp) / 2
    constant[numbers.rows("sharpness")][: run.n_heads] = heads
    constant[numbers.rows("log_belonging")] += 1.0
    constant[numbers.rows("stride")] = 1 / run.n_heads
    constant[numbers.rows("apart_sharpness")] += torch.linspace(1.0, 3.0, numbers.n_apart)
    constant[numbers.rows("apart")] = 0.0
    weights = torch.zeros(numbers.count, len(INVARIANTS))
    weights[:, INVARIANTS.index("one")] = constant
    return weights.flatten() * present(numbers, run.n_heads)


def first_heads(
    weights: Float[Tensor, " p"], numbers: Numbers, n_heads: int
) -> Float[Tensor, " q"]:
    """The weights of a run in a layer that has only the heads of this run."""
    return weights[present(numbers, n_heads) > 0]


def stacked(numbers: Numbers, runs: Sequence[SymmetricRun]) -> tuple[Tensor, Tensor]:
    """First weights of all runs, and which of them may change."""
    first = torch.stack([begin(numbers, run) for run in runs])
    known = torch.stack([
        present(numbers, run.n_heads) * _known(run.without).repeat(numbers.count) for run in runs
    ])  # fmt: skip
    return first, known


def _known(without: str) -> Float[Tensor, " f"]:
    return torch.tensor([float(name != without) for name in INVARIANTS])
