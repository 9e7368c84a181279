"""Greedy k-means++: two passes over the data for each seed."""

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
    rows = random_rows(session, 1, rng)
    draws = rng.uniform(size=(n_clusters - 1, n_trials(n_clusters)))
    if n_clusters > 1:
        all_at_once = session.run(Seeds(int(rows), draws))
        rows = rows if all_at_once is None else all_at_once
    for fractions in draws[len(rows) - 1 :]:
        (mass,) = session.fold(NewSeed(session.gather(rows[-1:]), first=len(rows) == 1))
        if mass > 0:
            candidates = session.draw_by_distance(torch.from_numpy(fractions))
        else:  # every point with weight is a seed already
            candidates = random_rows(session, 1, rng)
        (potentials,) = session.fold(Potential(session.gather(candidates), mass))
        rows = torch.cat([rows, candidates[potentials.argmin()][None]])
    return rows
