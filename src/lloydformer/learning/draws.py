"""Draws for training: every number is a pure function of (seed, stream, step, cell).

A training step draws millions of numbers for many runs at once, on the device, inside of a graph
that is captured once and replayed. Hence a generator without state that is a dozen operations on
whole tensors: the finishing function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014) of a key and a counter. A run draws the same numbers
alone, beside others, and when it is resumed.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_BITS = 23
"""Random bits of a number: with half of the last one it is exact in single precision."""

STREAMS = ("tasks", "drops", "empty", "sizes", "validation", "starts")
"""What numbers are drawn for; a stream's number is its place here."""


def _finished(z: Tensor) -> Tensor:
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * _FIRST  # products wrap modulo 2^64
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * _SECOND
    return z ^ (z >> 31 & (1 << 33) - 1)


def keys(seeds: Int[Tensor, " r"], stream: str, step: Int[Tensor, ""]) -> Int[Tensor, " r"]:
    """The key of each run's stream in a step."""
    return _finished(_finished(seeds * _GOLDEN ^ STREAMS.index(stream)) + (step + 1) * _GOLDEN)


def uniform(key: Int[Tensor, " r"], *shape: int) -> Float[Tensor, "r ..."]:
    """Numbers in (0, 1) in single precision, for each run a tensor of this shape."""
    count = math.prod(shape)
    cells = torch.arange(1, (count + 1) // 2 + 1, device=key.device) * _GOLDEN
    words = _finished(key[:, None] ^ cells)
    halves = torch.cat([words >> 64 - _BITS, words >> 32 - _BITS], dim=1)[:, :count]
    bits = halves & (1 << _BITS) - 1
    return ((bits + 0.5) * 2.0**-_BITS).to(torch.float32).view(len(key), *shape)


def whole(u: Float[Tensor, "*b"], low: int, high: int) -> Int[Tensor, "*b"]:
    """Whole numbers from low to high, both included, from numbers in (0, 1)."""
    return (low + u * (high - low + 1)).long().clamp_(max=high)


def n_gaps(n_cells: int, share: float) -> int:
    """How many numbers `chosen` needs so as not to end before the last cell."""
    mean = n_cells * share
    return math.ceil(mean + 8 * math.sqrt(mean) + 8)


def chosen(u: Float[Tensor, "r m"], n_cells: int, share: float) -> Int[Tensor, "r m"]:
    """Cells of 0..n_cells-1 that are each chosen with this probability; n_cells fills the rest.

    The gaps between chosen cells are geometric, so drawing them is as good as asking each cell,
    and 1/share times cheaper.
    """
    gaps = (u.log() / math.log1p(-share)).long() + 1
    return (gaps.cumsum(dim=1) - 1).clamp_(max=n_cells)
