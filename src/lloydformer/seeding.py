"""Initial centers: greedy k-means++ and random rows, written with the same folds as the plans."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, ranges
from lloydformer.plans.contract import Adding, Block, Run, total


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
    """What the sum of squared distances would be with each of some candidates as a seed."""

    candidates: Tensor

    def map(self, block: Block) -> tuple[Tensor]:
        away = _squared_distances(block, self.candidates)
        nearest = torch.minimum(away, block.distances[:, None]).double()
        weights = block.weights
        return ((nearest if weights is None else nearest * weights[:, None]).sum(dim=0),)


def _squared_distances(block: Block, centers: Tensor) -> Tensor:
    return (block.rows.scores(centers) + block.rows.squared_norms()[:, None]).clamp_(min=0)


def kmeans_plusplus(
    data: Blocks, run: Run, distances: Tensor, n_clusters: int, rng: np.random.RandomState
) -> Tensor:
    """The rows of k seeds (Arthur and Vassilvitskii, 2007), greedily as scikit-learn does it.

    Each seed after the first is the best of 2 + log k candidates, drawn with probability
    proportional to weight times squared distance to the nearest seed.
    """
    n_trials = 2 + int(np.log(n_clusters))
    rows = _weighted_rows(data, rng, 1)
    for _ in range(1, n_clusters):
        masses = run(Closer(data.take(rows[-1:]), first=len(rows) == 1))
        quantiles = rng.uniform(size=n_trials)
        if masses.sum() > 0:
            candidates = _draw(data, masses, distances, quantiles)
        else:  # every point with weight is a seed already
            candidates = _weighted_rows(data, rng, 1)
        (potentials,) = run(Potential(data.take(candidates)))
        rows = torch.cat([rows, candidates[potentials.argmin()][None]])
    return rows


def _draw(data: Blocks, masses: Tensor, distances: Tensor, quantiles: np.ndarray) -> Tensor:
    """Rows at these quantiles of the mass: first the leaf, then the row within it."""
    leaves, reached = list(ranges(data)), masses.cumsum(0)
    rows = []
    for quantile in quantiles:
        aim = float(quantile) * reached[-1]
        leaf = int((reached <= aim).sum().clamp(max=_last(masses)))
        start, stop = leaves[leaf]
        mass = distances[start:stop].double()
        if (weights := data.weights(start, stop)) is not None:
            mass = mass * weights
        rest = aim - (reached[leaf] - masses[leaf])
        row = int((mass.cumsum(0) <= rest).sum().clamp(max=_last(mass)))
        rows.append(start + row)
    return torch.tensor(rows, device=distances.device)


def _last(masses: Tensor) -> int:
    """The last place with mass: rounding must not lead beyond it."""
    return int(masses.nonzero()[-1])


def random_rows(data: Blocks, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """k different rows, drawn by weight."""
    return _weighted_rows(data, rng, n_clusters)


def _weighted_rows(data: Blocks, rng: np.random.RandomState, count: int) -> Tensor:
    weights = data.weights(0, data.n_rows)
    if weights is None and count == 1:
        return torch.tensor([rng.randint(data.n_rows)], device=data.device)
    p = None if weights is None else (weights / weights.sum()).cpu().numpy()
    rows = rng.choice(data.n_rows, size=count, replace=False, p=p)
    return torch.from_numpy(rows).to(data.device)
