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

    first: there is no earlier seed, so stored distances are replaced.
    """

    seed: Tensor
    first: bool
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

    The rows with the smallest keys $-\log(u) / w$, u being each row's own random number: those that
    successive draws would give (Efraimidis and Spirakis, 2006). The summary is keys, ascending,
    and rows; rows without weight are not drawn, so there may be fewer than `count`.
    """

    count: int
    seed: int
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        stop = block.start + block.size
        device = block.labels.device
        keys = -torch.log(row_uniform(self.seed, 0, block.start, stop).to(device))
        rows = torch.arange(block.start, stop, device=device)
        if block.weights is not None:
            has = block.weights > 0
            keys, rows = keys[has] / block.weights[has], rows[has]
        return self._smallest(keys, rows)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return self._smallest(torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]]))

    def _smallest(self, keys: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        # Stable, so that equal keys keep the order of their rows for every cut into blocks.
        order = keys.sort(stable=True).indices[: self.count]
        return keys[order], rows[order]


@dataclass(frozen=True)
class Potential(SumFold):
    """The sum of w d^2 that would be left if each candidate became a seed, (t,).

    now: the sum without any of them. Precondition: `NewSeed` has run for every seed so far.
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
        Numbers from [0, 1).
    """

    firsts: np.ndarray
    draws: np.ndarray
    writes: ClassVar[Columns] = ("labels", "distances")


@dataclass(frozen=True)
class Oversampling:
    r"""Draw each point with probability $\min(1, \ell w d^2 / \phi)$, in one pass.

    d is the distance to the nearest candidate, some of them being new, $\phi$ the sum of w d^2.
    A point is drawn if $\ell w d^2 / u > \phi$, u being its own random number. The sum over some
    of the points is a lower bound of $\phi$: a point that it rules out is ruled out, so a summary
    holds about $\ell$ points. It is: the sum of w d^2; ratios and rows of the points drawn; the
    mass that each candidate attracts.
    """

    fresh: Tensor
    known: int  # number of candidates before the new ones
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
        mass, attracted = first[0] + second[0], first[3] + second[3]
        ratios, rows = (torch.cat([first[i], second[i]]) for i in (1, 2))
        return self._keep_possible(mass, ratios, rows, attracted)
