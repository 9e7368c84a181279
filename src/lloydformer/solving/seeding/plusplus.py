"""Greedy k-means++: two passes over the data for each seed."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.plans.contract import Adding, Block, Run, total
from lloydformer.solving.seeding.by_weight import at_sums, random_rows

_SMALL = 1 << 22
"""Problems of so few products n d k are seeded in one call, where the engine has one."""


@dataclass(frozen=True)
class Closer:
    """Each point's squared distance to its nearest seed, one seed being new; mass by leaf."""

    seed: Tensor
    first: bool

    def map(self, block: Block) -> Tensor:
        away = _squared_distances(block, self.seed)[:, 0]
        if not self.first:
            away = torch.minimum(away, block.distances)
        block.distances.copy_(away)
        return total(block.distances, block.weights)[None]

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        return torch.cat([first, second])


@dataclass(frozen=True)
class Potential(Adding):
    """What the sum of squared distances would be with each of some candidates as a seed.

    now: what it is without them. They are met after a `Closer` has seen every seed so far.
    """

    candidates: Tensor
    now: Tensor

    def map(self, block: Block) -> tuple[Tensor]:
        away = _squared_distances(block, self.candidates)
        nearest = torch.minimum(away, block.distances[:, None]).double()
        weights = block.weights
        return ((nearest if weights is None else nearest * weights[:, None]).sum(dim=0),)


@dataclass(frozen=True)
class Seeds:
    """All seeds in one call, for small problems; None from an engine that has no such call.

    Seeds come after the first row, with draws (k - 1, trials) from [0, 1). What comes back are
    rows, fewer than k if every point with weight is a seed already.
    """

    first: int
    draws: np.ndarray

    def map(self, block: Block) -> None:
        return None

    def merge(self, first: None, second: None) -> None:
        return None


def _squared_distances(block: Block, centers: Tensor) -> Tensor:
    return (block.rows.scores(centers) + block.rows.squared_norms()[:, None]).clamp_(min=0)


def kmeans_plusplus(
    data: Blocks, run: Run, distances: Tensor, n_clusters: int, rng: np.random.RandomState
) -> Tensor:
    """The rows of k seeds (Arthur and Vassilvitskii, 2007), greedily as scikit-learn does it.

    Each seed after the first is the best of 2 + log k candidates, drawn with probability
    proportional to weight times squared distance to the nearest seed.
    """
    rows = random_rows(data, 1, rng)
    draws = rng.uniform(size=(n_clusters - 1, 2 + int(np.log(n_clusters))))
    if data.n_rows * data.n_features * n_clusters <= _SMALL:
        found = run(Seeds(int(rows), draws))
        rows = rows if found is None else found
    for quantiles in draws[len(rows) - 1 :]:
        masses = run(Closer(data.take(rows[-1:]), first=len(rows) == 1))
        if masses.sum() > 0:
            candidates = _draw(data, masses, distances, quantiles)
        else:  # every point with weight is a seed already
            candidates = random_rows(data, 1, rng)
        (potentials,) = run(Potential(data.take(candidates), masses.sum()))
        rows = torch.cat([rows, candidates[potentials.argmin()][None]])
    return rows


def _draw(data: Blocks, masses: Tensor, distances: Tensor, quantiles: np.ndarray) -> Tensor:
    """Rows at these quantiles of the mass."""
    aims = torch.from_numpy(quantiles).to(masses.device) * masses.cumsum(0)[-1]
    leaves, rests = at_sums(masses, aims)
    rows = torch.empty_like(leaves)
    for leaf in set(leaves.tolist()):
        start, stop = leaf * data.leaf, min((leaf + 1) * data.leaf, data.n_rows)
        mass = distances[start:stop].double()
        if (weights := data.weights(start, stop)) is not None:
            mass = mass * weights
        here = leaves == leaf
        rows[here] = start + at_sums(mass, rests[here])[0]
    return rows
