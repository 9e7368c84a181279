"""A start for large data: the best solution of a pool on a sample of the rows."""

import math
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
from lloydformer.solving.recombinations import InterruptedStart, PoolRun, Recombinations
from lloydformer.solving.relocations import Relocations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext, HistoryRecorder
from lloydformer.solving.seeding import random_rows, seeds_of_starts

# Rows of a sample, at least; and for each cluster, so that a cluster of mean size has enough rows
# to be found. Chosen by hand: benchmarks/recombining.py measures the result (docs/recombining.md).
FEWEST_ROWS = 1 << 14
ROWS_PER_CLUSTER = 20
# Products n d k of one pass over the data from which a sample pays; below it, a pool on all rows
# takes seconds.
LARGE = 1 << 29


def sample_rows(layout: Layout, n_clusters: int) -> int | None:
    """Return the number of rows of the sample; None if the data are not large enough for one."""
    rows = max(FEWEST_ROWS, ROWS_PER_CLUSTER * n_clusters)
    products = layout.n_rows * layout.n_features * n_clusters
    # With fewer than three times the rows of the sample, the pool would save little.
    return rows if products > LARGE and layout.n_rows >= 3 * rows else None


def relocate_starts(how: Relocations, deadline: float) -> Relocations:
    """Return the relocations of starts of large data: none, because children make up for them.

    With a deadline there may be no children, so starts are relocated as given.
    """
    return replace(how, patience=0) if math.isinf(deadline) else how


def after_sampling(how: Recombinations, deadline: float) -> Recombinations:
    """Return the settings for all rows, after a pool on a sample of them.

    They are two starts, one of which is the best solution of the sample, and one child.
    """
    # The other start keeps the promise that the result is not above that of Lloyd's algorithm from
    # it; a child corrects most of what the sample missed.
    return Recombinations(relocate_starts(how.first, deadline), n_pool=2, n_children=1)


def solve_sample(
    session: Session,
    n_clusters: int,
    how: Recombinations,
    rules: Rules,
    rng: np.random.RandomState,
    deadline: float,
) -> Tensor:
    """Return the best centers (k, d) of a pool on a sample, in the coordinates of the session.

    Rows of the sample have equal weights. It uses half of the time until the deadline.

    Raises
    ------
    InterruptedStart
        On Ctrl-C, if there is a solution already.
    """
    # Rows are drawn in proportion to their weights; if few rows have weight, all of these.
    count = sample_rows(session.layout, n_clusters)
    assert count is not None, "the data are large enough"
    if session.layout.weighted:
        drawn = session.fold(RowsByWeight(count, int(rng.randint(2**31 - 1))))[1]
    else:
        drawn = random_rows(session, count, rng)
    blocks = TensorBlocks(session.gather(drawn))
    with choose("auto", blocks).open(blocks) as sample:
        random_seed, now = int(rng.randint(2**31 - 1)), perf_counter()
        first = replace(relocate_starts(how.first, deadline), seed=random_seed)
        # One start after the other: seeding takes long, and Ctrl-C meanwhile keeps the solutions of
        # earlier starts.
        pool = replace(how, first=first, child_patience=1, starts_together=False)
        # The other half is for the iterations on all rows, each of which may take long.
        half = now + (deadline - now) / 2
        fit = FitContext.create(MeansPlan(), sample, rules, deadline=half)
        seeds = seeds_of_starts(sample, n_clusters, rng, how.n_pool)
        run = PoolRun(pool, fit, 0, (sample.gather(rows).double() for rows in seeds))
        recorder, origin = HistoryRecorder(fit, 0), blocks.origin.double()
        try:
            while not run.done and not fit.is_late:
                run.advance(recorder)
        except KeyboardInterrupt:
            if not run.can_finish:
                raise
            raise InterruptedStart(run.best().centers + origin) from None
        return run.best().centers + origin


def add_sampled_starts(
    starts: Iterator[Tensor],
    session: Session,
    n_clusters: int,
    how: Recombinations,
    rules: Rules,
    rng: np.random.RandomState,
    deadline: float,
) -> Iterator[Tensor]:
    """Yield after each start one that comes from a sample.

    With a deadline the first sample comes before the first start: there may be no time for both.
    """

    def solve_one() -> Tensor:
        return solve_sample(session, n_clusters, how, rules, rng, deadline)

    # Otherwise the given start comes first, as in every other fit: it is the one of `init`.
    sample_first = not math.isinf(deadline)
    if sample_first:
        yield solve_one()
    for centers in starts:
        yield centers
        if not sample_first:
            yield solve_one()
        sample_first = False
