"""Recombining k-means: the centers of two solutions are merged to k, and relocated.

docs/recombining.md describes the algorithm.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import draw_cluster_noise, draw_noise, squared_distances
from lloydformer.algorithms.relocating import Relocating, WeightedPoints
from lloydformer.numerics.search_constants import SAME_SOLUTION, TIE


@dataclass(frozen=True)
class Solution:
    """Centers with the partition that they define.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
        The centers.
    masses : ndarray of shape (k,)
        The sum of the weights of each cluster's points.
    objective : float
        The k-means objective.
    """

    centers: Float[ndarray, "k d"]
    masses: Float[ndarray, " k"]
    objective: float


@dataclass(frozen=True)
class RecombiningHistory:
    """The result of a run.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
        The best centers.
    objective : ndarray of shape (s,)
        The lowest objective so far, before each layer and after the last: one entry more than
        layers.
    pool : tuple of Solution
        Different solutions, the best one first.
    kept : tuple of bool
        For each child, whether it was added to the pool.
    """

    centers: Float[ndarray, "k d"]
    objective: Float[ndarray, " s"]
    pool: tuple[Solution, ...]
    kept: tuple[bool, ...]


def merge_centers(
    centers: Float[ndarray, "u d"], masses: Float[ndarray, " u"], k: int
) -> Float[ndarray, "k d"]:
    r"""Merge the cheapest pair of centers until k are left.

    The pair (a, b) costs $n_a n_b / (n_a + n_b)\, |c_a - c_b|^2$ (Ward), the growth of the
    objective if both clusters get one center. The merged center is their mean by mass; it takes
    the place of the first of them.
    """
    c, n = np.array(centers, float), np.array(masses, float)
    while len(c) > k:
        pairs = [(a, b) for a in range(len(c)) for b in range(a + 1, len(c))]
        costs = [
            n[a] * n[b] / (n[a] + n[b]) * ((c[a] - c[b]) ** 2).sum() if n[a] + n[b] > 0 else 0.0
            for a, b in pairs
        ]
        a, b = pairs[int(np.argmin(costs))]
        if n[a] + n[b] > 0:  # of two centers without points the first stays where it is
            c[a] = (n[a] * c[a] + n[b] * c[b]) / (n[a] + n[b])
        n[a] += n[b]
        c, n = np.delete(c, b, axis=0), np.delete(n, b)
    return c


def add_to_pool(pool: list[Solution], new: Solution, size: int) -> bool:
    """Add a solution to a pool that is sorted by objective; return whether it was added.

    A solution with the objective of a member is not added, but replaces it if it is better. A
    solution that is not better than the worst member of a full pool is not added.
    """
    for place, member in enumerate(pool):
        if abs(new.objective - member.objective) <= SAME_SOLUTION * member.objective:
            if new.objective < (1 - TIE) * member.objective:
                pool[place] = new
            return False
    if len(pool) == size and new.objective >= pool[-1].objective:
        return False
    pool.append(new)
    pool.sort(key=lambda member: member.objective)
    del pool[size:]
    return True


@dataclass(frozen=True)
class Recombining:
    """A pool of relocated solutions, pairs of which are recombined.

    Each start is relocated, and the different solutions form the pool. Then children are made,
    generation by generation: two parents are drawn, their 2k centers are merged to k, and the
    result is relocated. A child that is new and better than the worst member takes its place. If no
    child of the last generation was added, or if the pool has a single member, children are mutated
    before they are relocated: a center is dropped, and a point becomes a center. The search ends
    after `n_children` children, if the layers are used up, or if the best member has no error left.

    Attributes
    ----------
    n_children : int
        Largest number of children.
    patience : int
        Patience of `Relocating` for the starts.
    child_patience : int
        Patience of `Relocating` for the children.
    together : int
        Number of children of a generation, whose parents are drawn from the same pool.
    n_moved, n_draws : int
        See `Relocating`.
    rest : int or None
        See `Relocating`.
    seed : int
        Seed of the noise. The first start is relocated with this seed, every later start and child
        with the next one.
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
        """Run at most `n_layers` layers, those of all starts and children together.

        tolerance: the squared shift of all centers up to which they count as settled.
        """
        problem = WeightedPoints(points, np.ones(len(points)) if weights is None else weights)
        lowest, pool, kept = [np.inf], list[Solution](), list[bool]()

        def relocate_all(begin: list[ndarray], first: int, patience: int) -> list[bool]:
            """Relocate each of these centers and add them to the pool.

            first: number of solutions before them, which their seeds depend on.
            """
            # layers that are left are shared evenly
            most, solutions = (n_layers + 1 - len(lowest)) // len(begin), []
            for number, centers in enumerate(begin):
                seed = self.seed + first + number
                algorithm = Relocating(self.n_moved, self.n_draws, patience, self.rest, seed)
                history = algorithm.run(points, centers, most, weights, tolerance)
                lowest.extend(np.minimum(history.objective[:-1], lowest[-1]))
                solutions.append(measure(problem, history.centers[-1]))
            # only now: all children of a generation have parents from the same pool
            return [add_to_pool(pool, solution, len(starts)) for solution in solutions]

        relocate_all(list(starts), 0, self.patience)
        stuck = len(pool) == 1  # a single parent has nothing to recombine
        n_children = self.n_children if starts.shape[1] > 1 else 0  # one center has no better place
        # a generation needs at least one layer for each child
        while (
            len(kept) < n_children
            and len(lowest) + self.together <= n_layers
            and pool[0].objective > 0
        ):
            numbers = range(len(kept), min(len(kept) + self.together, n_children))
            begin = [self.child(problem, pool, number, mutate=stuck) for number in numbers]
            new = relocate_all(begin, len(starts) + len(kept), self.child_patience)
            stuck = not any(new) or len(pool) == 1
            kept += new
        # the first entry was a placeholder; the pool's best is measured after its last layer
        objective = np.minimum.accumulate([*lowest[1:], pool[0].objective])
        return RecombiningHistory(pool[0].centers, objective, tuple(pool), tuple(kept))

    def child(
        self, problem: WeightedPoints, pool: list[Solution], number: int, mutate: bool
    ) -> Float[ndarray, "k d"]:
        """Return the centers that child `number` begins with."""
        noise = draw_cluster_noise(self.seed, number, "parents", len(pool))
        parents = [pool[p] for p in np.argsort(-noise, kind="stable")[:2]]
        centers = np.concatenate([parent.centers for parent in parents])
        masses = np.concatenate([parent.masses for parent in parents])
        centers = merge_centers(centers, masses, len(parents[0].centers))
        return self.mutate(problem, centers, number) if mutate else centers

    def mutate(
        self, problem: WeightedPoints, centers: Float[ndarray, "k d"], number: int
    ) -> Float[ndarray, "k d"]:
        r"""Return the centers with one of them, drawn at random, moved to a point.

        The point is drawn by $\log w_i r_i + g$ with the distances to the other centers.
        """
        rows, centers = np.arange(len(problem.points)), centers.copy()
        dropped = np.argmax(draw_cluster_noise(self.seed, number, "dropped", len(centers)))
        r = squared_distances(problem.points, np.delete(centers, dropped, axis=0)).min(axis=1)
        noise = draw_noise(self.seed, number, "planted", 1, rows)[0]
        with np.errstate(divide="ignore"):  # points at a center or without weight are drawn last
            drawn = int(np.argmax(np.log(problem.weights * r) + noise))
        centers[dropped] = problem.points[drawn]
        return centers


def measure(problem: WeightedPoints, centers: Float[ndarray, "k d"]) -> Solution:
    """Return these centers with their masses and objective."""
    labels, _, r, _ = problem.two_nearest(centers)
    masses = np.bincount(labels, problem.weights, minlength=len(centers))
    return Solution(centers, masses, float(problem.weights @ r))
