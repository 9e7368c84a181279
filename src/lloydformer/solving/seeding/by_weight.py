"""Rows drawn by mass, without anything of size n: first the leaf, then the row within it."""

import numpy as np
import torch
from sklearn.utils.random import sample_without_replacement
from torch import Tensor

from lloydformer.data.blocks import Blocks, ranges


def at_sums(masses: Tensor, aims: Tensor) -> tuple[Tensor, Tensor]:
    """The first places where the sum of masses exceeds each aim, and what is left of the aims."""
    reached = masses.cumsum(0)
    last = torch.searchsorted(reached, reached[-1:])  # rounding must not lead beyond it
    places = torch.minimum(torch.searchsorted(reached, aims, right=True), last)
    return places, aims - (reached[places] - masses[places])


def random_rows(data: Blocks, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """k different rows, drawn by weight."""
    if data.weights(0, 1) is None:
        if n_clusters == 1:
            return torch.tensor([rng.randint(data.n_rows)], device=data.device)
        drawn = sample_without_replacement(data.n_rows, n_clusters, random_state=rng)
        return torch.from_numpy(np.asarray(drawn, dtype=np.int64)).to(data.device)
    return torch.tensor(_weighted(data, n_clusters, rng), device=data.device)


def _weighted(data: Blocks, count: int, rng: np.random.RandomState) -> list[int]:
    """One after the other; what has been drawn weighs nothing for the next."""
    leaves, rows = list(ranges(data)), list[int]()
    masses = torch.stack([_left(data, leaf, rows).sum() for leaf in leaves])
    for _ in range(count):
        places, rest = at_sums(masses, float(rng.uniform()) * masses.sum()[None])
        leaf = int(places)
        rows.append(leaves[leaf][0] + int(at_sums(_left(data, leaves[leaf], rows), rest)[0]))
        masses[leaf] = _left(data, leaves[leaf], rows).sum()
    return rows


def _left(data: Blocks, leaf: tuple[int, int], drawn: list[int]) -> Tensor:
    """The weights of a leaf without those of rows that have been drawn."""
    weights = data.weights(*leaf)
    assert weights is not None
    weights = weights.double().clone()
    weights[[row - leaf[0] for row in drawn if leaf[0] <= row < leaf[1]]] = 0.0
    return weights
