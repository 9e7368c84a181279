"""k-means||: many candidates in a few passes, and then the best k of them.

Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable k-means++", PVLDB 5(7), 2012.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.numerics.noise import row_uniform
from lloydformer.plans.assign import masses_of
from lloydformer.plans.contract import Block, Run
from lloydformer.solving.seeding.by_weight import random_rows
from lloydformer.solving.seeding.plusplus import kmeans_plusplus

ROUNDS = 5
OVERSAMPLING = 2
"""Candidates of a round, in expectation and at most, for each cluster."""


@dataclass(frozen=True)
class Oversample:
    r"""Draws each point with probability $\min(1, \ell w d^2 / \phi)$, in one pass.

    d is the distance to the nearest candidate, some of them being new, $\phi$ the sum of w d^2.
    A point is drawn if $\ell w d^2 / u > \phi$, u being its own random number. The sum over some
    of the points is a lower bound of $\phi$: what it rules out is ruled out, and what is left of a
    leaf or of several is $\ell$ points at most, in expectation.
    """

    fresh: Tensor
    known: int
    """How many candidates there were before the new ones."""
    most: int
    seed: int
    number: int

    def map(self, block: Block) -> tuple[Tensor, ...]:
        self._see(block)
        stop, device = block.start + len(block.labels), block.labels.device
        draws = row_uniform(self.seed, self.number, block.start, stop).to(device)
        rows = torch.arange(block.start, stop, device=device)
        mass = block.distances.double()
        if block.weights is not None:
            mass = mass * block.weights
        n_candidates = self.known + len(self.fresh)
        attracted = masses_of(block.labels.long(), block.weights, n_candidates)
        return self._drawn(mass.sum(), self.most * mass / draws, rows, attracted)

    def _see(self, block: Block) -> None:
        """Each point's nearest candidate, and its squared distance by differences: 0 is 0."""
        if len(self.fresh) == 0:
            return
        closest = block.rows.scores(self.fresh).min(dim=1).indices
        away = block.rows.squared_distances(self.fresh, closest)
        closer = away < block.distances if self.known else torch.ones_like(closest).bool()
        block.labels.copy_(torch.where(closer, closest + self.known, block.labels))
        block.distances.copy_(torch.where(closer, away, block.distances))

    def _drawn(
        self, mass: Tensor, ratios: Tensor, rows: Tensor, attracted: Tensor
    ) -> tuple[Tensor, ...]:
        drawn = ratios > mass
        return mass, ratios[drawn], rows[drawn], attracted

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mass, attracted = first[0] + second[0], first[3] + second[3]
        ratios, rows = (torch.cat([first[i], second[i]]) for i in (1, 2))
        return self._drawn(mass, ratios, rows, attracted)


def kmeans_parallel(data: Blocks, run: Run, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """k seeds, (k, d), seen from the data's origin, after ROUNDS + 1 passes over the data.

    There are more passes only where few points hold nearly all of the mass, so that there are
    fewer candidates than clusters. Candidates are reduced to k by greedy k-means++, each with the
    weight of the points that are nearest to it.
    """
    seed, most = int(rng.randint(2**31 - 1)), OVERSAMPLING * n_clusters
    candidates = fresh = data.take(random_rows(data, 1, rng))
    number = 0
    while True:
        known = len(candidates) - len(fresh)
        mass, _, rows, attracted = run(Oversample(fresh, known, most, seed, number))
        enough = number >= ROUNDS and len(candidates) >= n_clusters
        if enough or mass == 0:  # no mass: every point is a candidate already
            return _reduced(candidates, attracted, n_clusters, rng)
        fresh, number = data.take(rows), number + 1
        candidates = torch.cat([candidates, fresh])


def _reduced(
    candidates: Tensor, weights: Tensor, n_clusters: int, rng: np.random.RandomState
) -> Tensor:
    """Greedy k-means++ among the candidates, which are few enough for a single block."""
    m = len(candidates)
    few = TensorBlocks(candidates, weights, m, seen_from=torch.zeros_like(candidates[0]))
    labels = torch.zeros(m, dtype=torch.int32, device=candidates.device)
    block = Block(0, partial(few.read, 0, m), weights, labels, labels, candidates.new_empty(m))
    rows = kmeans_plusplus(few, lambda fold: fold.map(block), block.distances, n_clusters, rng)
    return candidates[rows].double()
