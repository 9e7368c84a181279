"""Random numbers for training: each is a pure function of (seed, stream, step, index).

A training step draws millions of numbers for many runs at once, on the device, inside a CUDA
graph that is captured once and replayed. The generator therefore has no state and is a dozen
operations on whole tensors: the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), applied to a key and a counter. A run draws the
same numbers alone, together with other runs, and after a resume.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_BITS = 23
"""Random bits of a number. Half of the last bit is added; the sum is exact in float32."""

STREAMS = ("tasks", "drops", "empty", "sizes", "validation", "starts")
"""What numbers are drawn for. The index of a stream enters its keys, so the order is fixed."""


def _splitmix(z: Tensor) -> Tensor:
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * _FIRST  # products wrap modulo 2^64
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * _SECOND
    return z ^ (z >> 31 & (1 << 33) - 1)


def stream_keys(
    seeds: Int[Tensor, " r"], stream: str, step: Int[Tensor, ""] | Int[Tensor, " r"]
) -> Int[Tensor, " r"]:
    """Return the key of each run for a stream and a step, which may differ between runs."""
    return _splitmix(_splitmix(seeds * _GOLDEN ^ STREAMS.index(stream)) + (step + 1) * _GOLDEN)


def uniform(key: Int[Tensor, " r"], *shape: int) -> Float[Tensor, "r ..."]:
    """Return float32 numbers in the open interval (0, 1): a tensor of this shape for each key."""
    count = math.prod(shape)
    counter = torch.arange(1, (count + 1) // 2 + 1, device=key.device) * _GOLDEN
    words = _splitmix(key[:, None] ^ counter)
    halves = torch.cat([words >> 64 - _BITS, words >> 32 - _BITS], dim=1)[:, :count]
    bits = halves & (1 << _BITS) - 1
    return ((bits + 0.5) * 2.0**-_BITS).to(torch.float32).view(len(key), *shape)


def integers(u: Float[Tensor, "*b"], low: int, high: int) -> Int[Tensor, "*b"]:
    """Map numbers in (0, 1) to integers from low to high, both included."""
    return (low + u * (high - low + 1)).long().clamp_(max=high)


def bernoulli_count(n_cells: int, probability: float) -> int:
    """Return how many uniform numbers `bernoulli_cells` needs to reach the last cell."""
    mean = n_cells * probability
    return math.ceil(mean + 8 * math.sqrt(mean) + 8)


def bernoulli_cells(
    u: Float[Tensor, "r m"], n_cells: int, probability: float
) -> Int[Tensor, "r m"]:
    """Choose each of the cells 0..n_cells-1 with this probability; pad with n_cells.

    The gaps between chosen cells are geometric. Drawing the gaps gives the same distribution as
    one draw for each cell, with 1/probability times fewer numbers.
    """
    gaps = (u.log() / math.log1p(-probability)).long() + 1
    return (gaps.cumsum(dim=1) - 1).clamp_(max=n_cells)
