"""Merging of centers: the cheapest pair by Ward's cost, until few are left."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.numerics.noise import gumbel
from lloydformer.plans.relocating import ClusterErrors, NoiseDraws, PointsByDistance
from lloydformer.plans.session import Session, Task


@dataclass(frozen=True)
class WardMerging(Task):
    """Merge centers (u, d) with masses (u,), in float64, to k of them; a tensor (k, d)."""

    centers: Tensor
    masses: Tensor
    k: int


class WardMerger:
    """Centers and masses that are merged pair by pair, in O(d) numbers for each pair of them.

    Each center remembers its cheapest partner among those after it, so that a merge looks at a row
    of costs and not at all of them.
    """

    def __init__(self, centers: np.ndarray, masses: np.ndarray) -> None:
        self.centers, self.masses = centers.copy(), masses.astype(np.float64)
        self.alive = np.ones(len(centers), dtype=bool)
        self.costs = np.full((len(centers), len(centers)), np.inf)
        for a in range(len(centers)):
            self.costs[a, a + 1 :] = self._costs_of(a)[a + 1 :]
        self.partners = self.costs.argmin(axis=1)
        self.least = self.costs.min(axis=1)

    def merge(self) -> None:
        """Merge the cheapest pair; the first one of equal costs."""
        a = int(self.least.argmin())
        b = int(self.partners[a])
        both = self.masses[a] + self.masses[b]
        if both > 0:
            weighted = self.masses[a] * self.centers[a] + self.masses[b] * self.centers[b]
            self.centers[a] = weighted / both
        self.masses[a] = both
        self.alive[b] = False
        self.costs[b], self.costs[:, b], self.least[b] = np.inf, np.inf, np.inf
        self._update(a, b)

    def _update(self, a: int, b: int) -> None:
        """The costs of center a, and the partners of those that had a or b.

        No other center gets a new partner: to a merged center it costs no less than to the nearer
        of the two.
        """
        costs = np.where(self.alive, self._costs_of(a), np.inf)
        self.costs[:a, a], self.costs[a, a + 1 :] = costs[:a], costs[a + 1 :]
        lost = self.alive & ((self.partners == a) | (self.partners == b))
        lost[a] = True
        rows = np.flatnonzero(lost)
        self.partners[rows] = self.costs[rows].argmin(axis=1)
        self.least[rows] = self.costs[rows, self.partners[rows]]

    def _costs_of(self, a: int) -> np.ndarray:
        r"""Ward's costs $n_a n_b / (n_a + n_b)\, |c_a - c_b|^2$ of all pairs with center a."""
        both = np.maximum(self.masses + self.masses[a], np.finfo(np.float64).tiny)
        away = np.square(self.centers - self.centers[a]).sum(axis=1)
        return np.asarray(self.masses * (self.masses[a] / both) * away)


def merge_centers(session: Session, centers: Tensor, masses: Tensor, k: int) -> Tensor:
    """Merge centers (u, d) to k by the engine's task, or here if it has none."""
    done = session.run(WardMerging(centers, masses, k))
    if done is None:
        left = merge_by_ward(centers.cpu().numpy(), masses.numpy(), k)
        done = torch.from_numpy(left).to(centers.device)
    return done


def merge_by_ward(centers: np.ndarray, masses: np.ndarray, k: int) -> np.ndarray:
    """Merge centers (u, d) with these masses (u,) until k are left: (k, d).

    A merged center is the mean of both by mass, and stands where the first of them stood.
    """
    merging = WardMerger(centers, masses)
    for _ in range(len(centers) - k):
        merging.merge()
    return merging.centers[merging.alive]


@dataclass(frozen=True)
class Mutation(Task):
    """A mutation in one call; a tensor (k, d). Centers are in float64."""

    centers: Tensor
    seed: int
    number: int


def mutate(session: Session, centers: Tensor, seed: int, number: int) -> Tensor:
    """The centers (k, d) with one of them, drawn at random, moved to a point.

    The point is drawn in proportion to weight times squared distance to the other centers. number:
    of the mutation; it enters the noise.
    """
    done = session.run(Mutation(centers, seed, number))
    return _by_folds(session, centers, seed, number) if done is None else done


def _by_folds(session: Session, centers: Tensor, seed: int, number: int) -> Tensor:
    k, rows = len(centers), torch.zeros(1, dtype=torch.long)
    dropped = int(gumbel(seed, number, "dropped", k, rows)[:, 0].argmax())
    others = torch.cat([centers[:dropped], centers[dropped + 1 :]])
    session.fold(ClusterErrors(others.to(session.layout.dtype)))
    everywhere = torch.zeros(k - 1, dtype=torch.long, device=centers.device)
    point = session.fold(PointsByDistance(everywhere, 1, NoiseDraws(seed, number, 1), "planted"))[2]
    mutant = centers.clone()
    mutant[dropped] = point[0, 0].double()
    return mutant
