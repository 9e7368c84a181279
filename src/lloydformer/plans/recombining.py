"""Merging of centers: the cheapest pair by Ward's cost, until few are left."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.session import Session, Task


@dataclass(frozen=True)
class Merged(Task):
    """Merge centers (u, d) with masses (u,), in float64, to k of them; a tensor (k, d)."""

    centers: Tensor
    masses: Tensor
    k: int


class Merging:
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


def merge(session: Session, centers: Tensor, masses: Tensor, k: int) -> Tensor:
    """Merge centers (u, d) to k by the engine's task, or here if it has none."""
    done = session.run(Merged(centers, masses, k))
    if done is None:
        left = merged(centers.cpu().numpy(), masses.numpy(), k)
        done = torch.from_numpy(left).to(centers.device)
    return done


def merged(centers: np.ndarray, masses: np.ndarray, k: int) -> np.ndarray:
    """Merge centers (u, d) with these masses (u,) until k are left: (k, d).

    A merged center is the mean of both by mass, and stands where the first of them stood.
    """
    merging = Merging(centers, masses)
    for _ in range(len(centers) - k):
        merging.merge()
    return merging.centers[merging.alive]
