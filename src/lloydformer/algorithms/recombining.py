"""Recombining k-means: two solutions are united, merged to k centers, and relocated."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import squared_distances
from lloydformer.algorithms.relocating import Relocating, WeightedPoints
from lloydformer.numerics.noise import gumbel

SAME = 1e-6
"""Solutions whose objectives differ by no more than this fraction count as the same one."""
TIE = 1e-9
"""Of two that are the same, the first one stays, unless the other is better by this fraction."""


@dataclass(frozen=True)
class Solution:
    """Centers, the mass of each cluster, and the objective."""

    centers: Float[ndarray, "k d"]
    masses: Float[ndarray, " k"]
    objective: float


@dataclass(frozen=True)
class RecombiningHistory:
    """The best centers, and the lowest objective after every layer."""

    centers: Float[ndarray, "k d"]
    objective: Float[ndarray, " s"]
    pool: tuple[Solution, ...]
    """Different solutions, the best one first."""
    kept: tuple[bool, ...]
    """Whether each child entered the pool."""


def merge(
    centers: Float[ndarray, "u d"], masses: Float[ndarray, " u"], k: int
) -> Float[ndarray, "k d"]:
    r"""Merge the cheapest pair of centers until k are left.

    The pair (a, b) costs $n_a n_b / (n_a + n_b)\, |c_a - c_b|^2$ (Ward): by this the objective
    grows if both clusters get one center. The merged center is their mean by mass; it stands where
    the first of them stood.
    """
    left = [(np.asarray(c, float), float(m)) for c, m in zip(centers, masses, strict=True)]
    while len(left) > k:
        pairs = [(a, b) for a in range(len(left)) for b in range(a + 1, len(left))]
        a, b = min(pairs, key=lambda pair: _cost(left[pair[0]], left[pair[1]]))
        left[a] = _united(left[a], left[b])
        del left[b]
    return np.stack([center for center, _ in left])


def _cost(one: tuple[ndarray, float], other: tuple[ndarray, float]) -> float:
    (c, m), (e, n) = one, other
    return m * n / (m + n) * float(((c - e) ** 2).sum()) if m + n > 0 else 0.0


def _united(one: tuple[ndarray, float], other: tuple[ndarray, float]) -> tuple[ndarray, float]:
    (c, m), (e, n) = one, other
    return (m * c + n * e) / (m + n) if m + n > 0 else c, m + n


def enter(pool: list[Solution], one: Solution, size: int) -> bool:
    """Enter a solution in a pool that is sorted by objective; False if it is not taken.

    If a member has the same objective, the better of the two stays, and nothing is taken. Nor is a
    solution that is worse than all members of a full pool.
    """
    for place, other in enumerate(pool):
        if abs(one.objective - other.objective) <= SAME * other.objective:
            if one.objective < (1 - TIE) * other.objective:
                pool[place] = one
            return False
    if len(pool) == size and one.objective >= pool[-1].objective:
        return False
    pool.append(one)
    pool.sort(key=lambda member: member.objective)
    del pool[size:]
    return True


@dataclass(frozen=True)
class Recombining:
    """A pool of relocated solutions, pairs of which are recombined.

    Each start is relocated with `patience`, and the different solutions form the pool. Then
    children are made, `together` of them from the same pool: two parents are drawn, their 2k
    centers are merged to k, and the result is relocated with `child_patience`. A child that is new
    and better than the worst member takes its place. If no child of the last generation was taken,
    or if the pool has a single member, children are mutated before they are relocated: a center
    is dropped, and a point becomes a center. It ends after `n_children` children, or
    if the best member has no error left.

    The first start draws the noise of `Relocating` with the same seed; every later start and
    child uses the next seed.
    """

    n_children: int = 40
    patience: int = 3
    child_patience: int = 1
    together: int = 4
    n_moved: int = 5
    n_draws: int = 3
    rest: int | None = None
    seed: int = 0

    def run(
        self,
        points: Float[ndarray, "n d"],
        starts: Float[ndarray, "p k d"],
        n_layers: int,
        weights: Float[ndarray, " n"] | None = None,
        tolerance: float = 0.0,
    ) -> RecombiningHistory:
        """Run at most `n_layers` layers, those of all starts and children together."""
        problem = WeightedPoints(points, np.ones(len(points)) if weights is None else weights)
        lowest, pool, kept = [np.inf], list[Solution](), list[bool]()

        def generation(begin: list[ndarray], first: int, patience: int) -> list[bool]:
            """Relocate each of these centers; `first`: number of solutions before them."""
            most, found = (n_layers + 1 - len(lowest)) // len(begin), []
            for number, centers in enumerate(begin):
                seed = self.seed + first + number
                how = Relocating(self.n_moved, self.n_draws, patience, self.rest, seed)
                course = how.run(points, centers, most, weights, tolerance)
                lowest.extend(np.minimum(course.objective[:-1], lowest[-1]))
                found.append(solution(problem, course.centers[-1]))
            return [enter(pool, one, len(starts)) for one in found]

        generation(list(starts), 0, self.patience)
        taken = len(pool) > 1
        n_children = self.n_children if starts.shape[1] > 1 else 0
        while (
            len(kept) < n_children
            and len(lowest) + self.together <= n_layers
            and pool[0].objective > 0
        ):
            numbers = range(len(kept), min(len(kept) + self.together, n_children))
            begin = [self.child(problem, pool, number, mutate=not taken) for number in numbers]
            new = generation(begin, len(starts) + len(kept), self.child_patience)
            taken = any(new) and len(pool) > 1
            kept += new
        objective = np.minimum.accumulate([*lowest[1:], pool[0].objective])
        return RecombiningHistory(pool[0].centers, objective, tuple(pool), tuple(kept))

    def child(
        self, problem: WeightedPoints, pool: list[Solution], number: int, mutate: bool
    ) -> Float[ndarray, "k d"]:
        """Return the centers that child `number` begins with."""
        noise = gumbel(self.seed, number, "parents", len(pool), torch.zeros(1, dtype=torch.long))
        parents = [pool[p] for p in np.argsort(-noise[:, 0].numpy(), kind="stable")[:2]]
        centers = np.concatenate([parent.centers for parent in parents])
        masses = np.concatenate([parent.masses for parent in parents])
        centers = merge(centers, masses, len(parents[0].centers))
        return self.mutated(problem, centers, number) if mutate else centers

    def mutated(
        self, problem: WeightedPoints, centers: Float[ndarray, "k d"], number: int
    ) -> Float[ndarray, "k d"]:
        r"""Return the centers with one of them, drawn at random, moved to a point.

        The point is drawn by $\log w_i r_i + g$ with the distances to the other centers.
        """
        rows, centers = torch.arange(len(problem.points)), centers.copy()
        noise = gumbel(self.seed, number, "dropped", len(centers), rows[:1])[:, 0].numpy()
        dropped = int(np.argmax(noise))
        r = squared_distances(problem.points, np.delete(centers, dropped, axis=0)).min(axis=1)
        noise = gumbel(self.seed, number, "planted", 1, rows)[0].numpy()
        with np.errstate(divide="ignore"):
            drawn = int(np.argmax(np.log(problem.weights * r) + noise))
        centers[dropped] = problem.points[drawn]
        return centers


def solution(problem: WeightedPoints, centers: Float[ndarray, "k d"]) -> Solution:
    """Measure these centers."""
    labels, _, r, _ = problem.two_nearest(centers)
    masses = np.bincount(labels, problem.weights, minlength=len(centers))
    return Solution(centers, masses, float(problem.weights @ r))
