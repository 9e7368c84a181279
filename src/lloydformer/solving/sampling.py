"""A start for large data: the best solution of a pool on a sample of the rows."""

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.engines import choose
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.seeding import RowsByWeight
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Descent
from lloydformer.solving.recombinations import Recombinations, Search
from lloydformer.solving.rules import Rules
from lloydformer.solving.seeding import random_rows, seeds_of_starts
from lloydformer.solving.solve import Starts, moments

FEWEST_ROWS = 1 << 14
"""Rows of a sample, at least."""
ROWS_A_CLUSTER = 20
"""Rows of a sample for each cluster, at least."""
LARGE = 1 << 29
"""Products n d k of a pass over the data from which a sample pays."""


class StoppedSample(KeyboardInterrupt):
    """Ctrl-C while the pool works on a sample; `centers` (k, d): its best solution so far."""

    def __init__(self, centers: Tensor) -> None:
        super().__init__("stopped by the user")
        self.centers = centers


def sample_rows(layout: Layout, n_clusters: int) -> int | None:
    """Number of rows of the sample; None if the data are not large enough for one."""
    rows = max(FEWEST_ROWS, ROWS_A_CLUSTER * n_clusters)
    products = layout.n_rows * layout.n_features * n_clusters
    return rows if products > LARGE and layout.n_rows >= 3 * rows else None


def drawn_rows(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """The rows of a sample, drawn in proportion to their weights; all with weight, if few have."""
    count = sample_rows(session.layout, n_clusters)
    assert count is not None, "the data are large enough"
    if not session.layout.weighted:
        return random_rows(session, count, rng)
    return session.fold(RowsByWeight(count, int(rng.randint(2**31 - 1))))[1]


def sampled_start(
    session: Session,
    rows: Tensor,
    n_clusters: int,
    how: Recombinations,
    rules: Rules,
    rng: np.random.RandomState,
) -> Tensor:
    """The best centers (k, d) of a pool on these rows, in the coordinates of the session.

    Rows weigh the same there. Half of the time that is left is spent on it. `StoppedSample` if the
    user stops it when there is a solution.
    """
    blocks = TensorBlocks(session.gather(rows))
    with choose("auto", blocks).open(blocks) as sample:
        square, tolerance = moments(sample, rules.tol)
        descent = Descent(MeansPlan().knowing(square), sample, rules, tolerance)
        starts = seeds_of_starts(sample, n_clusters, rng, how.n_pool)
        seed = int(rng.randint(2**31 - 1))
        now = perf_counter()
        deadline = now + (how.first.deadline - now) / 2
        first = replace(how.first.of_large(), seed=seed, deadline=deadline)
        search = Search(replace(how, first=first, child_patience=1), descent, 0)
        try:
            search.run(sample.gather(rows).double() for rows in starts)
        except KeyboardInterrupt:
            found = search.outcome()
            if found is None:
                raise
            raise StoppedSample(found.centers + blocks.origin.double()) from None
        return search.pool.members[0].centers + blocks.origin.double()


def with_sampled_starts(
    starts: Starts,
    n_clusters: int,
    how: Recombinations,
    rules: Rules,
    rng: np.random.RandomState,
) -> Starts:
    """After each start one that comes from a sample.

    With a time limit the first sample comes before the first start: there may be no time for both.
    """

    def sampled(session: Session) -> Tensor:
        rows = drawn_rows(session, n_clusters, rng)
        return sampled_start(session, rows, n_clusters, how, rules, rng)

    def both(session: Session) -> Iterator[Tensor]:
        before = how.first.limited
        if before:
            yield sampled(session)
        for centers in starts(session):
            yield centers
            if not before:
                yield sampled(session)
            before = False

    return both
