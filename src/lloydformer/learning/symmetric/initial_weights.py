"""Initial weights of a symmetric layer: a soft Lloyd step whose heads differ in sharpness."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.symmetric.invariants import INVARIANTS
from lloydformer.learning.symmetric.number_layout import NumberLayout
from lloydformer.learning.symmetric.settings import SymmetricRun

_NOISE = 0.1
_SHARPNESS = (0.7, 12.0)
"""Of the softest and the sharpest head, in units of the mean squared distance."""


def head_mask(numbers: NumberLayout, n_heads: int) -> Float[Tensor, " p"]:
    """Return 1 for the weights of the first n_heads heads, 0 for those of the other heads."""
    has = (torch.arange(numbers.n_heads) < n_heads).float()
    mask = torch.ones(numbers.count)
    for name, size in numbers.sizes.items():
        if name == "belonging":
            mask[numbers.rows(name)] = torch.outer(has, has).flatten()
        elif size == numbers.n_heads and not name.startswith("apart"):
            mask[numbers.rows(name)] = has
    return mask[:, None].expand(-1, len(INVARIANTS)).flatten()


def initial_weights(numbers: NumberLayout, run: SymmetricRun) -> Float[Tensor, " p"]:
    """Return the weights of a soft Lloyd step with noise, independent of the invariants."""
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
    return weights.flatten() * head_mask(numbers, run.n_heads)


def weights_of_heads(
    weights: Float[Tensor, " p"], numbers: NumberLayout, n_heads: int
) -> Float[Tensor, " q"]:
    """Return the weights of the first n_heads heads, for a layer that has only these."""
    return weights[head_mask(numbers, n_heads) > 0]


def initial_stack(numbers: NumberLayout, runs: Sequence[SymmetricRun]) -> tuple[Tensor, Tensor]:
    """Return the initial weights of all runs, and 1 for those that training may change, else 0."""
    first = torch.stack([initial_weights(numbers, run) for run in runs])
    trainable = torch.stack([
        head_mask(numbers, run.n_heads) * _invariant_mask(run.without).repeat(numbers.count)
        for run in runs
    ])  # fmt: skip
    return first, trainable


def _invariant_mask(without: str) -> Float[Tensor, " f"]:
    return torch.tensor([float(name != without) for name in INVARIANTS])
