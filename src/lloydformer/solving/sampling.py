"""A start for large data: the best solution of a pool on a sample of the rows."""

from collections.abc import Iterator
from dataclasses import replace

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

    They weigh the same there.
    """
    blocks = TensorBlocks(session.gather(rows))
    with choose("auto", blocks).open(blocks) as sample:
        square, tolerance = moments(sample, rules.tol)
        descent = Descent(MeansPlan().knowing(square), sample, rules, tolerance)
        starts = seeds_of_starts(sample, n_clusters, rng, how.n_pool)
        seed = int(rng.randint(2**31 - 1))
        first = replace(how.first, seed=seed, patience=0)  # children repair most of it
        search = Search(replace(how, first=first, child_patience=1), descent, 0)
        search.run(sample.gather(rows).double() for rows in starts)
        return search.pool.members[0].centers + blocks.origin.double()


def with_sampled_starts(
    starts: Starts,
    n_clusters: int,
    how: Recombinations,
    rules: Rules,
    rng: np.random.RandomState,
) -> Starts:
    """After each start one that comes from a sample."""

    def both(session: Session) -> Iterator[Tensor]:
        for centers in starts(session):
            yield centers
            rows = drawn_rows(session, n_clusters, rng)
            yield sampled_start(session, rows, n_clusters, how, rules, rng)

    return both
