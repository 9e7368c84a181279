"""Initial centers: k-means++ (plain and robust), k-means|| and random rows, by folds of a session.

- k-means++: Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007;
  greedy, as in scikit-learn.
- k-means||: Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable k-means++", PVLDB 5(7),
  2012.
- robust k-means++: far points count as if they were less far. Plain k-means++ draws rows in
  proportion to their squared distance, so it takes outliers first. Bhaskara, Vadgama and Xu
  ("Greedy sampling for approximate clustering in the presence of outliers", NeurIPS 2019) cap the
  squared distances. Here the cap follows the seeds.
"""

import math
from collections.abc import Iterator
from itertools import count

import numpy as np
import torch
from sklearn.utils.random import sample_without_replacement
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import Engine
from lloydformer.engines.native.engine import Native, NativeSession
from lloydformer.engines.partitioned.session import PartitionedSession
from lloydformer.plans.seeding import (
    EqualDistances,
    NewSeed,
    Oversampling,
    PlusPlusSeeds,
    Potential,
)
from lloydformer.plans.session import Session


def random_rows(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Draw different rows (k,) in proportion to their weights."""
    layout = session.layout
    if layout.weighted:
        return session.draw_by_weight(torch.from_numpy(rng.uniform(size=n_clusters)))
    if n_clusters == 1:
        return torch.tensor([rng.randint(layout.n_rows)], device=layout.device)
    rows = sample_without_replacement(layout.n_rows, n_clusters, random_state=rng)
    return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(layout.device)


def n_trials(n_clusters: int) -> int:
    """Return the number of candidates for each seed, as in scikit-learn."""
    return 2 + int(np.log(n_clusters))


def kmeans_plusplus(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Return the rows (k,) of k seeds, by greedy k-means++.

    Each seed after the first is the best of 2 + log k candidates, drawn in proportion to weight
    times squared distance to the nearest seed.
    """
    return next(seeds_of_starts(session, n_clusters, rng, 1))


def seeds_of_starts(
    session: Session, n_clusters: int, rng: np.random.RandomState, n_starts: int
) -> Iterator[Tensor]:
    """Yield the rows of `kmeans_plusplus` for several starts."""
    shape = (n_clusters - 1, n_trials(n_clusters))
    draws = [(random_rows(session, 1, rng), rng.uniform(size=shape)) for _ in range(n_starts)]
    # An engine may seed several starts in one call. The first one is seeded alone: it can be run
    # while the others are not wanted yet (Ctrl-C, a deadline).
    for group in filter(None, (draws[:1], draws[1:])):
        seeds = None
        if n_clusters > 1:
            firsts = torch.cat([first for first, _ in group]).cpu().numpy()
            seeds = session.run(
                PlusPlusSeeds(firsts, np.stack([fractions for _, fractions in group]))
            )
        for number, (first, fractions) in enumerate(group):
            if seeds is None:
                yield _seed_by_folds(session, first, fractions, rng)
                continue
            rows = seeds[number]
            # Fewer than k seeds: every point with weight is one. Fill up with random rows.
            more = [random_rows(session, 1, rng) for _ in range(n_clusters - len(rows))]
            yield torch.cat([rows, *more]) if more else rows


def _seed_by_folds(
    session: Session, rows: Tensor, draws: np.ndarray, rng: np.random.RandomState
) -> Tensor:
    """Return the rows of k seeds: two passes over the data for each."""
    for fractions in draws:
        (mass,) = session.fold(NewSeed(session.gather(rows[-1:]), first=len(rows) == 1))
        if mass > 0:
            candidates = session.draw_by_distance(torch.from_numpy(fractions))
        else:  # every point with weight is a seed already
            candidates = random_rows(session, 1, rng)
        (potentials,) = session.fold(Potential(session.gather(candidates), mass))
        rows = torch.cat([rows, candidates[potentials.argmin()][None]])
    return rows


# Rounds of k-means||, and candidates of a round for each cluster (in expectation): the values that
# the paper's experiments recommend.
ROUNDS = 5
OVERSAMPLING = 2


def kmeans_parallel(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Return k seeds, (k, d) in float64, after ROUNDS + 1 passes over the data.

    There are more passes only if a few points hold nearly all of the mass, so that there are
    fewer candidates than clusters. Candidates are reduced to k by greedy k-means++, each with the
    weight of the points that are nearest to it.
    """
    random_seed, most = int(rng.randint(2**31 - 1)), OVERSAMPLING * n_clusters
    candidates = fresh = session.gather(random_rows(session, 1, rng))
    for number in count():
        known = len(candidates) - len(fresh)
        fold = Oversampling(fresh, known, most, random_seed, number)
        mass, _, rows, weights = session.fold(fold)
        enough = number >= ROUNDS and len(candidates) >= n_clusters
        # No mass: every point is a candidate already. It is infinite or NaN if another thread
        # writes into the rows: then no row would ever be drawn.
        if enough or not 0 < mass < math.inf:
            break
        fresh = session.gather(rows)
        candidates = torch.cat([candidates, fresh])
    # The candidates are few enough for a single leaf: their sums need no tree.
    zero = torch.zeros_like(candidates[0])
    few = TensorBlocks(candidates, weights, len(candidates), given_origin=zero)
    # An engine of the kind that runs the session, so that seeds are bit-identical in one process
    # and on a cluster.
    engine: Engine
    if isinstance(session, PartitionedSession):
        engine = session.spec.make_engine(1)
    else:
        engine = Native(1) if isinstance(session, NativeSession) else Chunked(1)
    with engine.open(few) as opened:
        return candidates[kmeans_plusplus(opened, n_clusters, rng)].double()


# The constants of robust k-means++ were chosen by hand; tests/solving/test_robust_seeding.py plants
# outliers and looks for seeds in every cluster.
# At least this share of the points are no outliers.
SHARE = 0.8
# Squared distances count at most this many times the squared radius that holds `SHARE` of the
# points. Above 1, so that a small cluster without a seed still counts more than its neighbours.
FACTOR = 4.0
# Times as many candidates as greedy k-means++, as some are outliers; and tries of all seeds. With
# more than `MANY` seeds a quarter of the candidates and one try: time grows with k^2.
MORE, TRIES, MANY = 8, 3, 50
# Rows of the sample that seeds are drawn from, rows for each seed, and most numbers in the sample.
SAMPLE, FOR_EACH_SEED, NUMBERS = 4096, 16, 1 << 25
# Below this fraction a radius is rounding: the points lie on seeds.
_ROUNDING = 1e-14


def kmeans_robust(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Return k seeds, (k, d) in float64, from a sample of the rows; the best of some tries."""
    # Rows (m,) at evenly spread fractions of the total weight; all rows, if few. Evenly: a small
    # cluster whose rows are stored together is not missed by chance.
    layout = session.layout
    most = max(SAMPLE, FOR_EACH_SEED * n_clusters)
    most = max(min(most, NUMBERS // layout.n_features), n_clusters)
    size = most if layout.weighted else min(most, layout.n_rows)
    session.fold(EqualDistances())
    fractions = (np.arange(size) + rng.uniform(0.25, 0.75, size=size)) / size
    rows = session.draw_by_distance(torch.from_numpy(fractions))
    sample = _Sample(session.gather(rows).double().cpu())
    tries = [sample.seeds(n_clusters, rng) for _ in range(1 if n_clusters > MANY else TRIES)]
    cap = min(sample.cap(away) for _, away in tries)
    seeds, _ = min(tries, key=lambda attempt: attempt[1].clamp(max=cap).sum().item())
    return session.gather(rows[seeds.to(rows.device)]).double()


class _Sample:
    """Points (m, d) seen from their median, from where only outliers are far."""

    def __init__(self, points: Tensor) -> None:
        self.points = points - points.median(dim=0).values
        self.norms = self.points.square().sum(dim=1)
        self.order = int(SHARE * (len(points) - 1))
        self.least = _ROUNDING * self.norms.sort().values[self.order].item()

    def seeds(self, n_clusters: int, rng: np.random.RandomState) -> tuple[Tensor, Tensor]:
        """Return k points by number, and the squared distance of each point to the nearest, (m,).

        Each seed is the best of several candidates: it leaves the smallest sum of capped squares.
        """
        trials = n_trials(n_clusters) * (MORE // 4 if n_clusters > MANY else MORE)
        # The first seed, too, is the best of several: a single draw may be an outlier.
        candidates = torch.from_numpy(rng.randint(len(self.points), size=trials))
        all_away = self._squared_distances(candidates)
        cap = min(self.cap(squares) for squares in all_away.T)
        best = all_away.clamp(max=cap).sum(dim=0).argmin()
        seeds, away = [candidates[best]], all_away[:, best]
        for fractions in rng.uniform(size=(n_clusters - 1, trials)):
            capped = away.clamp(max=self.cap(away))
            reached = capped.cumsum(0)
            targets = torch.from_numpy(fractions) * reached[-1]
            candidates = torch.searchsorted(reached, targets, right=True)
            candidates = candidates.clamp_(max=len(capped) - 1)
            nearest = torch.minimum(self._squared_distances(candidates), away[:, None])  # (m, t)
            best = torch.minimum(nearest, capped[:, None]).sum(dim=0).argmin()
            seeds.append(candidates[best])
            away = nearest[:, best]
        return torch.stack(seeds), away

    def cap(self, away: Tensor) -> float:
        """Return the largest squared distance that counts.

        Infinity if `SHARE` of the points lie on seeds: all others would count for nothing.
        """
        radius = away.kthvalue(self.order + 1).values.item()
        return FACTOR * radius if radius > self.least else float("inf")

    def _squared_distances(self, numbers: Tensor) -> Tensor:
        """Return the squared distances (m, t) of all points to some of them."""
        products = self.points @ self.points[numbers].T
        return (self.norms[:, None] - 2 * products + self.norms[numbers]).clamp_(min=0)
