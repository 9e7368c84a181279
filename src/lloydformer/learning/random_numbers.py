"""Random numbers for training: each is a pure function of (seed, stream, step, index).

A training step draws millions of numbers for many runs at once, on the device, inside a CUDA
graph that is captured once and replayed. The generator therefore has no state and is a dozen
operations on whole tensors: the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), applied to a key and a counter. A run draws the
same numbers alone, together with other runs, and after a resume.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

# The constants of SplitMix64, less 2^64: torch multiplies int64 only, and products wrap modulo
# 2^64 as those of unsigned numbers do.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64

# Random bits of a number. With half of the last bit added it has 24 bits, which float32 holds
# exactly, and it is neither 0 nor 1, so that its logarithm is finite.
_BITS = 23

# The purposes of random numbers. The index of a stream enters its keys: a stream that moves in
# this list gives other numbers, and trainings that were interrupted would resume differently.
STREAMS = (
    "tasks",  # points and initial centers of the tasks of a step
    "drops",  # attention weights that dropout sets to zero
    "empty",  # points to which Lloyd's algorithm moves the centers of empty clusters
    "sizes",  # numbers of points and clusters of a step, the same for all runs
    "validation",  # seeds of the tasks on which weights are evaluated
    "starts",  # starts by which symmetric training estimates the spread of a task
)


def _splitmix(z: Int[Tensor, "*b"]) -> Int[Tensor, "*b"]:
    """Return the finalizer of SplitMix64, which maps different numbers to different ones."""
    # The masks make shifts of signed numbers those of unsigned ones: zeros come from the left.
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * _FIRST
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * _SECOND
    return z ^ (z >> 31 & (1 << 33) - 1)


def stream_keys(
    seeds: Int[Tensor, " r"], stream: str, step: Int[Tensor, ""] | Int[Tensor, " r"]
) -> Int[Tensor, " r"]:
    """Return the key of each run for a stream and a step, which may differ between runs."""
    # The inner round separates seeds and streams: with seeds and steps in one sum, seed 1 at step 0
    # would have the key of seed 0 at step 1. The outer round is SplitMix64 from that state, which
    # adds its constant before each output: step 0 adds it once.
    return _splitmix(_splitmix(seeds * _GOLDEN ^ STREAMS.index(stream)) + (step + 1) * _GOLDEN)


def uniform(keys: Int[Tensor, " r"], *shape: int) -> Float[Tensor, "r ..."]:
    """Return float32 numbers in the open interval (0, 1): a tensor of this shape for each key."""
    count = math.prod(shape)
    # Each word of 64 bits gives two numbers, one from the top of either half: half the work.
    counter = torch.arange(1, (count + 1) // 2 + 1, device=keys.device) * _GOLDEN
    words = _splitmix(keys[:, None] ^ counter)
    halves = torch.cat([words >> 64 - _BITS, words >> 32 - _BITS], dim=1)[:, :count]
    bits = halves & (1 << _BITS) - 1
    return ((bits + 0.5) * 2.0**-_BITS).to(torch.float32).view(len(keys), *shape)


def uniform_parts(
    keys: Int[Tensor, " r"], size: int, shapes: dict[str, tuple[int, ...]]
) -> dict[str, Float[Tensor, "r b ..."]]:
    """Return numbers in (0, 1) by name, each part (r, size, *shape).

    All parts are one draw, since on a GPU a few long operations are faster than many short ones.
    """
    counts = [size * math.prod(shape) for shape in shapes.values()]
    parts = torch.split(uniform(keys, sum(counts)), counts, dim=1)
    return {
        name: part.view(len(keys), size, *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def integers(u: Float[Tensor, "*b"], low: int, high: int) -> Int[Tensor, "*b"]:
    """Map numbers in (0, 1) to integers from low to high, both included."""
    # u below 1 may still round up to high + 1 when it is scaled
    return (low + u * (high - low + 1)).long().clamp_(max=high)


def bernoulli_count(n_cells: int, probability: float) -> int:
    """Return the number of uniform numbers that `bernoulli_cells` needs to reach the last cell."""
    # A fixed count, as a captured CUDA graph has fixed shapes. The number of chosen cells has a
    # variance below its mean, so this is at least 8 standard deviations above it; 8 more cover
    # small means, where the distribution is skewed.
    mean = n_cells * probability
    return math.ceil(mean + 8 * math.sqrt(mean) + 8)


def bernoulli_cells(
    u: Float[Tensor, "r m"], n_cells: int, probability: float
) -> Int[Tensor, "r m"]:
    """Choose each of the cells 0..n_cells-1 with a probability in (0, 1); pad with n_cells.

    The gaps between chosen cells are geometric. Drawing the gaps gives the same distribution as
    one draw for each cell, with 1/probability times fewer numbers.
    """
    gaps = (u.log() / math.log1p(-probability)).long() + 1
    return (gaps.cumsum(dim=1) - 1).clamp_(max=n_cells)


@dataclass(frozen=True)
class Dropout:
    """Draws the attention weights that are dropped in a training step, for all runs at once.

    Attributes
    ----------
    seeds : Tensor of shape (r,)
        Seed of each run.
    step : Tensor of shape ()
        Number of the training step.
    probability : float
        Probability that a weight is dropped, above 0 and below 1; only `indices` uses it.
    """

    seeds: Int[Tensor, " r"]
    step: Int[Tensor, ""]
    probability: float

    def seeds_of(self, depth: int) -> list[int]:
        """Return a seed for each run, for layers that draw their numbers from torch."""
        keys = stream_keys(self.seeds, "drops", self.step) + depth
        # seeds are not negative
        return [int(key) & (1 << 62) - 1 for key in keys.tolist()]

    def indices(self, n_weights: dict[str, int], depth: int) -> dict[str, Int[Tensor, " p"]]:
        """Return the flat indices of the dropped weights of each slot.

        Parameters
        ----------
        n_weights : dict
            Number of attention weights of a run, by slot. Those of all runs lie one after the
            other; the index one past the last is padding.
        depth : int
            Number of the unrolled layer, which changes the draw.

        Returns
        -------
        dict
            By slot, a tensor of indices with as many entries in every step: those of the dropped
            weights, filled up with the padding.
        """
        counts = [bernoulli_count(n, self.probability) for n in n_weights.values()]
        u = uniform(stream_keys(self.seeds, "drops", self.step) + depth, sum(counts))
        parts = torch.split(u, counts, dim=1)
        runs = torch.arange(len(self.seeds), device=u.device)[:, None]
        indices = {}
        for (slot, n), part in zip(n_weights.items(), parts, strict=True):
            cells = bernoulli_cells(part, n, self.probability)
            indices[slot] = torch.where(cells < n, cells + runs * n, len(runs) * n).flatten()
        return indices
