"""Counter-based noise: a draw is a pure function of (seed, layer, head, cluster, row).

So the circuit, the plain algorithm, a plan over blocks of rows and a worker on another machine
all draw the same numbers, in any order. The generator is Philox 4x32 with ten rounds (Salmon et
al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
"""

from typing import Any, overload

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)

# Heads that draw noise. The index of a head enters the counter, so the order must not change.
HEADS = (
    *("encoder_cross", "encoder_self", "decoder_cross", "decoder_self", "affinity"),
    *("grow", "drawn"),  # relocations
    *("parents", "dropped", "planted"),  # recombinations
)

Words = tuple[Tensor, Tensor, Tensor, Tensor]
IntWords = tuple[int, int, int, int]
Key = tuple[int | Tensor, int | Tensor]


def _high_low(a: Any, multiplier: int) -> tuple[Any, Any]:
    product = a * multiplier  # int64 wraps modulo 2^64; both halves stay correct
    return (product >> 32) & _MASK, product & _MASK


@overload
def philox(counter: Words, key: Key) -> Words: ...
@overload
def philox(counter: IntWords, key: tuple[int, int]) -> IntWords: ...
def philox(counter: Any, key: Any) -> Any:
    """Return four 32-bit words from a counter and a key: ten rounds of Philox 4x32.

    Words are tensors (int64) or Python integers.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = _high_low(c0, _MULTIPLIERS[0])
        high1, low1 = _high_low(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


def uniform(
    seed: int | Int[Tensor, " b"], layer: int, head: str, n_clusters: int, rows: Int[Tensor, " n"]
) -> Float[Tensor, "*b k n"]:
    """Return numbers in (0, 1) with 52 random bits, for clusters 0..k-1 and these global rows.

    The counter is (row, row >> 32, cluster // 2, layer and head): one call of the generator
    serves an even cluster and the odd one after it. A tensor of seeds gives a batch of draws.
    """
    pairs = torch.arange((n_clusters + 1) // 2, device=rows.device)[:, None]  # (k/2, 1)
    site = torch.full_like(rows, (layer << 8 | HEADS.index(head)) & _MASK)  # (n)
    shape = (len(pairs), rows.shape[0])  # a graph knows the number of rows by this name only
    low, high = (rows & _MASK).expand(shape), (rows >> 32 & _MASK).expand(shape)
    counter = (low, high, pairs.expand(shape), site.expand(shape))
    if isinstance(seed, Tensor):
        seed = seed[:, None, None]  # (b, 1, 1)
    words = philox(counter, (seed & _MASK, seed >> 32 & _MASK))
    even, odd = _fraction(*words[:2]), _fraction(*words[2:])
    return torch.stack((even, odd), dim=-2).flatten(-3, -2)[..., :n_clusters, :]


def cluster_uniform(seed: int, layer: int, head: str, n_clusters: int) -> list[float]:
    """Return the numbers of `uniform` for clusters 0..k-1 and row 0.

    Computed with Python integers: for a few clusters ten times as fast as with tensors.
    """
    site, drawn = (layer << 8 | HEADS.index(head)) & _MASK, list[float]()
    for pair in range((n_clusters + 1) // 2):
        words = philox((0, 0, pair, site), (seed & _MASK, seed >> 32 & _MASK))
        for high, low in (words[:2], words[2:]):
            drawn.append(((high >> 6 << 26 | low >> 6) + 0.5) * 2.0**-52)
    return drawn[:n_clusters]


def row_uniform(seed: int, number: int, start: int, stop: int) -> Float[Tensor, " n"]:
    """Return a number in (0, 1) for each of the rows start..stop-1.

    `number` distinguishes repeated draws of the same rows. For draws over all rows of large data:
    NumPy's Philox 4x64 with the counter (row // 4, 0, number, 0), on the CPU, twenty times as
    fast as `uniform`.
    """
    first = start // 4
    counter = np.array([first, 0, number, 0], dtype=np.uint64)
    words = np.random.Philox(counter=counter, key=seed).random_raw(stop - 4 * first)
    bits = words[start - 4 * first :] >> np.uint64(12)
    return torch.from_numpy((bits + 0.5) * 2.0**-52)


def _fraction(high: Tensor, low: Tensor) -> Tensor:
    """Return 52 random bits plus half of the last one, so that the result is never 0 or 1."""
    bits = ((high >> 6) << 26) | (low >> 6)
    return (bits.to(torch.float64) + 0.5) * 2.0**-52


def gumbel(
    seed: int | Int[Tensor, " b"], layer: int, head: str, n_clusters: int, rows: Int[Tensor, " n"]
) -> Float[Tensor, "*b k n"]:
    r"""Return standard Gumbel draws, -log(-log u) with u uniform, in float64."""
    return -torch.log(-torch.log(uniform(seed, layer, head, n_clusters, rows)))
