"""Folds and tasks of seeding: distances to the nearest seed, candidates, oversampling."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.numerics.noise import row_uniform
from lloydformer.plans.assign import cluster_masses
from lloydformer.plans.session import Columns, PointBlock, SumFold, Task, weighted_sum


@dataclass(frozen=True)
class NewSeed(SumFold):
    """Lower each point's stored squared distance to that of a new seed; returns the sum of w d^2.

    Attributes
    ----------
    seed : Tensor of shape (1, d)
        The new seed.
    first : bool
        There is no earlier seed, so stored distances are replaced.
    """

    seed: Tensor
    first: bool
    # Labels are written by the native kernel for dense rows only: the nearest seed of each row, by
    # which it skips rows that the next seed cannot be nearer to.
    writes: ClassVar[Columns] = ("labels", "distances")

    @property
    def writes_from(self) -> Columns:
        return () if self.first else self.writes

    def map(self, block: PointBlock) -> tuple[Tensor]:
        away = block.rows.distances_to_all(self.seed)[:, 0]  # 0 for rows that equal the seed
        if not self.first:
            away = torch.minimum(away, block.distances)
        block.distances.copy_(away)
        return (weighted_sum(block.distances, block.weights),)


@dataclass(frozen=True)
class EqualDistances(SumFold):
    """Store the distance 1 for every point: then rows are drawn by their weights alone."""

    writes: ClassVar[Columns] = ("distances",)

    def map(self, block: PointBlock) -> tuple[Tensor]:
        block.distances.fill_(1.0)
        return (weighted_sum(block.distances, block.weights),)


@dataclass(frozen=True)
class RowsByWeight:
    r"""Draw different rows in proportion to their weights, in one pass.

    The rows with the smallest keys $-\log(u) / w$, u being each row's own random number, have the
    distribution of successive draws (Efraimidis and Spirakis, 2006). The summary is the keys, in
    ascending order, and their rows; rows without weight are not drawn, so there may be fewer than
    `count`.
    """

    count: int
    random_seed: int
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        stop = block.start + block.size
        device = block.labels.device
        keys = -torch.log(row_uniform(self.random_seed, 0, block.start, stop).to(device))
        rows = torch.arange(block.start, stop, device=device)
        if block.weights is not None:
            weighted = block.weights > 0
            keys, rows = keys[weighted] / block.weights[weighted], rows[weighted]
        return self._keep_smallest(keys, rows)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        keys, rows = (torch.cat(pair) for pair in zip(first, second, strict=True))
        return self._keep_smallest(keys, rows)

    def _keep_smallest(self, keys: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        # Stable, so that equal keys keep the order of their rows for every cut into blocks.
        order = keys.sort(stable=True).indices[: self.count]
        return keys[order], rows[order]


@dataclass(frozen=True)
class Potential(SumFold):
    """For each candidate, the sum of w d^2 if it became a seed, (t,).

    Precondition: `NewSeed` has run for every seed so far; reads distances.

    Attributes
    ----------
    candidates : Tensor of shape (t, d)
        The points that may become the next seed.
    now : Tensor of shape ()
        The sum of w d^2 without any of them. Only the kernel of the native engine needs it: it
        computes by how much each candidate lowers this sum.
    """

    candidates: Tensor
    now: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        # By one matrix product: candidates are compared with each other, so their last digits do
        # not matter as those of stored distances do.
        squares = block.rows.squared_norms()[:, None]
        away = (block.rows.scores(self.candidates) + squares).clamp_(min=0)
        nearest = torch.minimum(away, block.distances[:, None]).double()
        weights = block.weights
        return ((nearest if weights is None else nearest * weights[:, None]).sum(dim=0),)


@dataclass(frozen=True)
class PlusPlusSeeds(Task):
    """All seeds of greedy k-means++ for s starts in one call; returns the rows of each start.

    There are fewer rows than k if every point with weight is a seed already.

    Attributes
    ----------
    firsts : ndarray of shape (s,)
        The rows of the first seeds.
    draws : ndarray of shape (s, k - 1, trials)
        Random numbers from [0, 1), which choose the candidates of each seed.
    """

    firsts: np.ndarray
    draws: np.ndarray
    # What the kernel of the native engine writes; that of CUDA has arrays of its own.
    writes: ClassVar[Columns] = ("labels", "distances")


@dataclass(frozen=True)
class Oversampling:
    r"""Draw each point with probability $\min(1, \ell w d^2 / \phi)$, in one pass.

    d is the distance to the nearest candidate, $\phi$ the sum of w d^2 over all points. A point is
    drawn if its ratio $\ell w d^2 / u$ is above $\phi$, u being its own random number. The sum over
    some of the points is a lower bound of $\phi$, so that a point whose ratio is not above it can
    be dropped at once, and a summary holds about $\ell$ points. The summary is the sum of w d^2,
    ratios and rows of the points that may be drawn, and the weight of the points that are nearest
    to each candidate.

    Attributes
    ----------
    fresh : Tensor of shape (m, d)
        The candidates that are new in this pass.
    known : int
        Number of candidates of earlier passes, whose distances are stored.
    most : int
        The expected number of points drawn, $\ell$, at most.
    seed : int
        Random seed of the numbers u.
    number : int
        Number of the pass; each has other numbers u.
    """

    fresh: Tensor
    known: int
    most: int
    seed: int
    number: int
    writes: ClassVar[Columns] = ("labels", "distances")

    @property
    def writes_from(self) -> Columns:
        return self.writes if self.known else ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        if len(self.fresh) > 0:
            # The nearest candidate of each point, and its squared distance by differences: a
            # candidate must have the distance 0 from itself, or it would be drawn again.
            closest = block.rows.scores(self.fresh).min(dim=1).indices
            away = block.rows.squared_distances(self.fresh, closest)
            closer = away < block.distances if self.known else torch.ones_like(closest).bool()
            block.labels.copy_(torch.where(closer, closest + self.known, block.labels))
            block.distances.copy_(torch.where(closer, away, block.distances))
        rows = torch.arange(block.start, block.start + block.size, device=block.labels.device)
        mass = block.distances.double()
        if block.weights is not None:
            mass = mass * block.weights
        n_candidates = self.known + len(self.fresh)
        attracted = cluster_masses(block.labels.long(), block.weights, n_candidates)
        return self._keep_possible(mass.sum(), self.ratios(block.start, mass), rows, attracted)

    def ratios(self, start: int, mass: Tensor) -> Tensor:
        r"""Return the ratios $\ell w d^2 / u$ of the rows from `start` on; `mass`: their w d^2."""
        draws = row_uniform(self.seed, self.number, start, start + len(mass))
        return self.most * mass / draws.to(mass.device)

    def _keep_possible(
        self, mass: Tensor, ratios: Tensor, rows: Tensor, attracted: Tensor
    ) -> tuple[Tensor, ...]:
        """Return a summary without the points that its mass rules out."""
        possible = ratios > mass
        return mass, ratios[possible], rows[possible], attracted

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        masses, ratios, rows, attracted = zip(first, second, strict=True)
        return self._keep_possible(
            masses[0] + masses[1], torch.cat(ratios), torch.cat(rows), attracted[0] + attracted[1]
        )
