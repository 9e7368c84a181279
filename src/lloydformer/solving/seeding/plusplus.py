"""Greedy k-means++: two passes over the data for each seed."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.seeding import NewSeed, Potential, Seeds
from lloydformer.plans.session import Session
from lloydformer.solving.seeding.random_rows import random_rows


def n_trials(n_clusters: int) -> int:
    """Candidates for each seed, as in scikit-learn."""
    return 2 + int(np.log(n_clusters))


def kmeans_plusplus(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """The rows (k,) of k seeds (Arthur and Vassilvitskii, 2007), greedily as in scikit-learn.

    Each seed after the first is the best of 2 + log k candidates, drawn in proportion to weight
    times squared distance to the nearest seed.
    """
    return next(seeds_of_starts(session, n_clusters, rng, 1))


def seeds_of_starts(
    session: Session, n_clusters: int, rng: np.random.RandomState, n_starts: int
) -> Iterator[Tensor]:
    """`kmeans_plusplus` for several starts.

    An engine may do those after the first one together; the first can be used without them.
    """
    shape = (n_clusters - 1, n_trials(n_clusters))
    drawn = [(random_rows(session, 1, rng), rng.uniform(size=shape)) for _ in range(n_starts)]
    for some in filter(None, (drawn[:1], drawn[1:])):
        found = None
        if n_clusters > 1:
            firsts = torch.cat([first for first, _ in some]).cpu().numpy()
            found = session.run(Seeds(firsts, np.stack([draws for _, draws in some])))
        for number, (first, draws) in enumerate(some):
            if found is None:
                yield _one_by_one(session, first, draws, rng)
            else:
                yield _filled(session, found[number], n_clusters, rng)


def _filled(session: Session, rows: Tensor, count: int, rng: np.random.RandomState) -> Tensor:
    """Random rows after the seeds, if every point with weight is a seed already."""
    more = [random_rows(session, 1, rng) for _ in range(count - len(rows))]
    return torch.cat([rows, *more]) if more else rows


def _one_by_one(
    session: Session, rows: Tensor, draws: np.ndarray, rng: np.random.RandomState
) -> Tensor:
    for fractions in draws:
        (mass,) = session.fold(NewSeed(session.gather(rows[-1:]), first=len(rows) == 1))
        if mass > 0:
            candidates = session.draw_by_distance(torch.from_numpy(fractions))
        else:  # every point with weight is a seed already
            candidates = random_rows(session, 1, rng)
        (potentials,) = session.fold(Potential(session.gather(candidates), mass))
        rows = torch.cat([rows, candidates[potentials.argmin()][None]])
    return rows
