"""Greedy k-means++ that outliers do not lead astray: far points count as if they were less far.

Plain k-means++ draws rows in proportion to their squared distance, so it takes outliers first.
Bhaskara, Vadgama and Xu ("Greedy sampling for approximate clustering in the presence of outliers",
NeurIPS 2019) cap the squared distances. Here the cap follows the seeds.
"""

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.thread_pool import one_core
from lloydformer.plans.seeding import EqualDistances
from lloydformer.plans.session import Session
from lloydformer.solving.seeding.plusplus import n_trials

SHARE = 0.8
"""At least this share of the points are no outliers."""
FACTOR = 4.0
"""Squared distances count at most this often the squared radius that holds `SHARE` of the points.

Above 1, so that a cluster without a seed stands out although it has less than 1 - `SHARE`.
"""
MORE, TRIES, MANY = 8, 3, 50
"""Candidates for each one of greedy k-means++, as some are outliers, and tries of all seeds.

With more than `MANY` seeds, a quarter of the candidates and one try: time grows with k^2.
"""
SAMPLE, FOR_EACH_SEED, NUMBERS = 4096, 16, 1 << 25
"""Rows of the sample that seeds are drawn from, rows for each seed, and most numbers in it."""
_ROUNDING = 1e-14


@one_core()
def kmeans_robust(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """k seeds, (k, d) in float64, from a sample of the rows; the best of some tries."""
    rows = _sampled(session, n_clusters, rng)
    sample = _Sample(session.gather(rows).double().cpu())
    tries = [sample.seeds(n_clusters, rng) for _ in range(1 if n_clusters > MANY else TRIES)]
    cap = min(sample.cap(away) for _, away in tries)
    seeds, _ = min(tries, key=lambda found: found[1].clamp(max=cap).sum().item())
    return session.gather(rows[seeds.to(rows.device)]).double()


def _sampled(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Rows (m,) at evenly spread fractions of the total weight: all of them, if they are few."""
    layout = session.layout
    most = max(SAMPLE, FOR_EACH_SEED * n_clusters)
    most = max(min(most, NUMBERS // layout.n_features), n_clusters)
    size = most if layout.weighted else min(most, layout.n_rows)
    session.fold(EqualDistances())
    fractions = (np.arange(size) + rng.uniform(0.25, 0.75, size=size)) / size
    return session.draw_by_distance(torch.from_numpy(fractions))


class _Sample:
    """Points (m, d) seen from their median, from where only outliers are far."""

    def __init__(self, points: Tensor) -> None:
        self.points = points - points.median(dim=0).values
        self.norms = self.points.square().sum(dim=1)
        self.order = int(SHARE * (len(points) - 1))
        self.least = _ROUNDING * self.norms.sort().values[self.order].item()

    def seeds(self, n_clusters: int, rng: np.random.RandomState) -> tuple[Tensor, Tensor]:
        """Numbers (k,) of points, and the squared distance of each point to the nearest, (m,).

        Each seed is the best of several candidates: it leaves the smallest sum of capped squares.
        """
        trials = n_trials(n_clusters) * (MORE // 4 if n_clusters > MANY else MORE)
        first, away = self._first(torch.from_numpy(rng.randint(len(self.points), size=trials)))
        seeds = [first]
        for fractions in rng.uniform(size=(n_clusters - 1, trials)):
            capped = away.clamp(max=self.cap(away))
            drawn = _drawn(capped, torch.from_numpy(fractions))
            nearest = torch.minimum(self._squares(drawn), away[:, None])  # (m, t)
            best = torch.minimum(nearest, capped[:, None]).sum(dim=0).argmin()
            seeds.append(drawn[best])
            away = nearest[:, best]
        return torch.stack(seeds), away

    def cap(self, away: Tensor) -> float:
        """No cap if `SHARE` of the points lie on seeds: all the others would count for nothing."""
        radius = away.kthvalue(self.order + 1).values.item()
        return FACTOR * radius if radius > self.least else float("inf")

    def _first(self, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """The candidate with the smallest sum of capped squares, and the squares (m,)."""
        away = self._squares(drawn)
        cap = min(self.cap(squares) for squares in away.T)
        best = away.clamp(max=cap).sum(dim=0).argmin()
        return drawn[best], away[:, best]

    def _squares(self, numbers: Tensor) -> Tensor:
        """Squared distances (m, t) of all points to some of them."""
        products = self.points @ self.points[numbers].T
        return (self.norms[:, None] - 2 * products + self.norms[numbers]).clamp_(min=0)


def _drawn(masses: Tensor, fractions: Tensor) -> Tensor:
    """Numbers of points, drawn in proportion to their masses."""
    reached = masses.cumsum(0)
    drawn = torch.searchsorted(reached, fractions * reached[-1], right=True)
    return drawn.clamp_(max=len(masses) - 1)
