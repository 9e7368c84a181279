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
    """Merge centers (u, d) with masses (u,), in float64, to k of them; returns a tensor (k, d)."""

    centers: Tensor
    masses: Tensor
    k: int


def merge_by_ward(centers: np.ndarray, masses: np.ndarray, k: int) -> np.ndarray:
    r"""Merge centers (u, d) with these masses (u,) until k are left: (k, d).

    Ward's cost $n_a n_b / (n_a + n_b)\, |c_a - c_b|^2$ is by how much the objective grows if both
    clusters share their mean. The cheapest pair is merged, the first one of equal costs.
    A merged center is the mean of both by mass, in the place of the first of them.
    """
    centers, masses = centers.copy(), masses.astype(np.float64)
    alive = np.ones(len(centers), dtype=bool)

    def costs_of(a: int) -> np.ndarray:
        both = np.maximum(masses + masses[a], np.finfo(np.float64).tiny)  # no 0/0 without mass
        away = np.square(centers - centers[a]).sum(axis=1)
        return np.asarray(masses * (masses[a] / both) * away)

    # Each center remembers its cheapest partner among those after it, so that a merge looks at a
    # few rows of costs and not at all of them. Pairs are stored once, above the diagonal.
    costs = np.full((len(centers), len(centers)), np.inf)
    for a in range(len(centers)):
        costs[a, a + 1 :] = costs_of(a)[a + 1 :]
    partners, least = costs.argmin(axis=1), costs.min(axis=1)
    for _ in range(len(centers) - k):
        a = int(least.argmin())
        b = int(partners[a])
        both = masses[a] + masses[b]
        if both > 0:
            centers[a] = (masses[a] * centers[a] + masses[b] * centers[b]) / both
        masses[a] = both
        alive[b] = False
        costs[b], costs[:, b], least[b] = np.inf, np.inf, np.inf
        new = np.where(alive, costs_of(a), np.inf)
        costs[:a, a], costs[a, a + 1 :] = new[:a], new[a + 1 :]
        # Only centers that had a or b as their partner need a new one: merging with the merged
        # center costs no less than merging with the nearer of the two did.
        lost = alive & ((partners == a) | (partners == b))
        lost[a] = True
        rows = np.flatnonzero(lost)
        partners[rows] = costs[rows].argmin(axis=1)
        least[rows] = costs[rows, partners[rows]]
    return centers[alive]


def merge_centers(session: Session, centers: Tensor, masses: Tensor, k: int) -> Tensor:
    """Merge centers (u, d) to k of them: by the engine's task, or in NumPy if it has none."""
    done = session.run(WardMerging(centers, masses, k))
    # NumPy suffices: merging needs only centers and masses, and no pass over the points.
    if done is None:
        left = merge_by_ward(centers.cpu().numpy(), masses.numpy(), k)
        done = torch.from_numpy(left).to(centers.device)
    return done


@dataclass(frozen=True)
class Mutation(Task):
    """A mutation in one call, see `mutate`; returns a tensor (k, d). Centers are in float64."""

    centers: Tensor
    seed: int
    number: int


def mutate(session: Session, centers: Tensor, seed: int, number: int) -> Tensor:
    """Return the centers (k, d) with one of them, drawn at random, moved to a point.

    The point is drawn in proportion to weight times squared distance to the other centers, as in
    HG-means. number: number of the mutation; each has other noise.
    """
    done = session.run(Mutation(centers, seed, number))
    if done is not None:
        return done
    k, rows = len(centers), torch.zeros(1, dtype=torch.long)
    dropped = int(gumbel(seed, number, "dropped", k, rows)[:, 0].argmax())
    others = torch.cat([centers[:dropped], centers[dropped + 1 :]])
    session.fold(ClusterErrors(others.to(session.layout.dtype)))
    # All clusters have the place 0, so that the point is drawn from all rows.
    everywhere = torch.zeros(k - 1, dtype=torch.long, device=centers.device)
    point = session.fold(PointsByDistance(everywhere, 1, NoiseDraws(seed, number, 1), "planted"))[2]
    mutant = centers.clone()
    mutant[dropped] = point[0, 0].double()
    return mutant
