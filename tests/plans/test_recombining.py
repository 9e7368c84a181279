"""Recombining k-means on every engine is the plain algorithm, draw for draw."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.algorithms import Recombining as Plain
from lloydformer.algorithms.recombining import merge_centers
from lloydformer.algorithms.relocating import WeightedPoints
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, Native, instruction_set
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.recombining import merge_by_ward, mutate
from lloydformer.solving.recombinations import PoolRun, Recombinations
from lloydformer.solving.relocations import Relocations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext, HistoryRecorder

NATIVE = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
SETS = ("portable", "avx2", "avx512")
ENGINE = {"chunked": Chunked, "native": Native}
EACH = pytest.mark.parametrize("name", ["chunked", pytest.param("native", marks=NATIVE)])


def blobs(seed: int, n: int = 120, d: int = 2, k: int = 6, pool: int = 3, weighted=False):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 6 * rng.integers(0, 3, size=(n, d))
    weights = rng.uniform(0.2, 2, size=n) * (rng.random(n) < 0.9) if weighted else None
    starts = np.stack([points[rng.choice(n, k, replace=False)] for _ in range(pool)])
    return points, starts, weights


def run_plan(engine, points, starts, weights, first: Relocations, most: int, **how):
    """The outcome and the pool, in the coordinates of the points."""
    weights = None if weights is None else torch.from_numpy(weights)
    data = TensorBlocks(torch.from_numpy(points), weights, leaf=64)
    with engine.open(data) as session:
        fit = FitContext.create(MeansPlan(), session, Rules(most, 0.0, empty="keep"))
        placed = (torch.from_numpy(start).double() - data.origin for start in starts)
        run = PoolRun(Recombinations(first, len(starts), **how), fit, 0, placed)
        recorder = HistoryRecorder(fit, 0)
        while not run.done:
            run.advance(recorder)
        outcome = run.finish(recorder.history)
    return (outcome.centers + data.origin).numpy(), outcome.history, run.pool.members


@EACH
@given(
    st.integers(0, 10**6), st.integers(2, 7), st.booleans(), st.integers(0, 2),
    st.sampled_from([None, 2]), st.sampled_from([60, 4000]),
)  # fmt: skip
@settings(deadline=None, max_examples=3)
def test_it_is_the_plain_algorithm(name, seed, k, weighted, patience, rest, most):
    points, starts, weights = blobs(seed, k=k, weighted=weighted)
    how = {"patience": patience, "rest": rest, "seed": seed, "n_moved": 3}
    plain = Plain(n_children=5, **how).run(points, starts, most, weights)
    engine = ENGINE[name](1)
    found = run_plan(engine, points, starts, weights, Relocations(**how), most, n_children=5)
    np.testing.assert_allclose(found[0], plain.centers, atol=1e-9)
    np.testing.assert_allclose(found[1], plain.objective, rtol=1e-9)
    assert [m.objective for m in found[2]] == pytest.approx([m.objective for m in plain.pool])


@EACH
def test_every_child_draws_its_own_noise(name):
    """Points without clusters, so that solutions depend on the draws; three generations."""
    points = np.random.default_rng(2).normal(size=(90, 3))
    starts = np.stack([points[i * 9 : i * 9 + 9] for i in range(4)])
    plain = Plain(n_children=10, patience=1, seed=3).run(points, starts, 4000)
    first = Relocations(patience=1, seed=3)
    found = run_plan(ENGINE[name](1), points, starts, None, first, 4000, n_children=10)
    np.testing.assert_allclose(found[1], plain.objective, rtol=1e-9)
    assert sum(plain.kept) > 1


@NATIVE
@pytest.mark.parametrize("isa", SETS)
def test_every_instruction_set_recombines_alike(isa):
    if SETS.index(isa) > SETS.index(instruction_set()):
        pytest.skip(f"this machine does not have {isa}")
    points, starts, weights = blobs(3, k=5, weighted=True)
    plain = Plain(n_children=5, patience=1, seed=4).run(points, starts, 4000, weights)
    engine, first = Native(1, instruction_set=isa), Relocations(patience=1, seed=4)
    centers = run_plan(engine, points, starts, weights, first, 4000, n_children=5)[0]
    np.testing.assert_allclose(centers, plain.centers, atol=1e-9)


@NATIVE
@pytest.mark.parametrize("n", [400, 20_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(n, dtype):
    points, starts, _ = blobs(7, n=n, d=4, k=9, pool=3)
    points, first = points.astype(dtype), Relocations(seed=1, patience=1)
    one, *more = (
        run_plan(Native(threads), points, starts, None, first, 300, n_children=5)
        for threads in (1, 2, 3)
    )
    for centers, history, _ in more:
        assert history == one[1]
        assert (centers == one[0]).all()


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=40)
def test_merging_is_that_of_the_plain_algorithm(seed, ties):
    rng = np.random.default_rng(seed)
    count, d = int(rng.integers(2, 14)), int(rng.integers(1, 4))
    k, shape = int(rng.integers(1, count + 1)), (count, d)
    centers = rng.integers(0, 3, size=shape).astype(float) if ties else rng.normal(size=shape)
    masses = rng.integers(0, 4, size=count).astype(float)
    found, plain = merge_by_ward(centers, masses, k), merge_centers(centers, masses, k)
    # The two round differently, so either of several cheapest pairs may look the cheaper one.
    assert np.allclose(found, plain, atol=1e-12) or has_equal_costs(centers, masses, k)


def has_equal_costs(centers, masses, k):
    """Merge in exact arithmetic; return whether two pairs ever have the same least cost above 0."""
    c = [[Fraction(x) for x in row] for row in centers.tolist()]
    n = [Fraction(x) for x in masses.tolist()]
    while len(c) > k:
        costs = {}
        for a, b in combinations(range(len(c)), 2):
            away = sum((x - y) ** 2 for x, y in zip(c[a], c[b], strict=True))
            costs[a, b] = n[a] * n[b] / (n[a] + n[b]) * away if n[a] + n[b] else Fraction(0)
        least = min(costs.values())
        cheapest = [pair for pair, cost in costs.items() if cost == least]
        if least > 0 and len(cheapest) > 1:
            return True
        a, b = cheapest[0]
        if n[a] + n[b]:
            means = ((n[a] * x + n[b] * y) / (n[a] + n[b]) for x, y in zip(c[a], c[b], strict=True))
            c[a] = list(means)
        n[a] += n[b]
        del c[b], n[b]
    return False


@EACH
def test_mutation_is_that_of_the_plain_algorithm(name):
    points, starts, weights = blobs(5, weighted=True)
    data = TensorBlocks(torch.from_numpy(points), torch.from_numpy(weights), leaf=32)
    with ENGINE[name](1).open(data) as session:
        for number in range(5):
            begin = torch.from_numpy(starts[0]) - data.origin
            found = (mutate(session, begin, 3, number) + data.origin).numpy()
            plain = Plain(seed=3).mutate(WeightedPoints(points, weights), starts[0], number)
            np.testing.assert_allclose(found, plain, atol=1e-12)
            assert ((found != starts[0]).any(axis=1)).sum() >= 1
