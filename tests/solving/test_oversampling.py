"""k-means||: draws as a plain loop makes them, passes as promised, starts as good as k-means++."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked, ChunkedSession
from lloydformer.numerics.noise import row_uniform
from lloydformer.plans.seeding import Oversampling
from lloydformer.solving.seeding import OVERSAMPLING, ROUNDS, kmeans_parallel


def blobs(rng, n=600, k=8, d=3):
    return rng.normal(size=(n, d)) + rng.uniform(-8, 8, size=(k, d))[rng.integers(k, size=n)]


@contextmanager
def opened(points, weights=None, leaf=64, n_threads=1):
    """A session over the points, seen from zero."""
    weights = None if weights is None else torch.tensor(weights)
    data = TensorBlocks(torch.tensor(points), weights, leaf, torch.zeros(points.shape[1]).double())
    with Chunked(n_threads).open(data) as session:
        yield session


def seeds(points, k, seed, *args, **how):
    with opened(points, *args, **how) as session:
        return kmeans_parallel(session, k, np.random.RandomState(seed)).numpy()


def plainly_drawn(points, weights, candidates, most, seed, number):
    """Each row with probability min(1, most w d^2 / phi), all of it at once."""
    squares = ((points[:, None] - candidates[None]) ** 2).sum(axis=2).min(axis=1)
    chances = most * weights * squares / (weights * squares).sum()
    return np.flatnonzero(row_uniform(seed, number, 0, len(points)).numpy() < chances)


@pytest.mark.parametrize("leaf", [7, 64, 1000])
@pytest.mark.parametrize("most", [1, 10, 400])
def test_draws_are_those_of_a_plain_computation(leaf, most, rng):
    points, weights = blobs(rng), rng.exponential(size=600)
    first, second = points[:1], points[100:105]
    found = []
    with opened(points, weights, leaf) as session:
        for fresh, known, number in ((first, 0, 0), (second, 1, 1)):
            fold = Oversampling(torch.tensor(fresh), known, most, 3, number)
            found.append((session.fold(fold), known + len(fresh), number))
    for (mass, _, rows, attracted), n_candidates, number in found:
        every = np.concatenate([first, second])[:n_candidates]
        assert rows.tolist() == plainly_drawn(points, weights, every, most, 3, number).tolist()
        squares = ((points[:, None] - every[None]) ** 2).sum(axis=2)
        assert mass.item() == pytest.approx((weights * squares.min(axis=1)).sum())
        own = np.bincount(squares.argmin(axis=1), weights, minlength=len(every))
        np.testing.assert_allclose(attracted, own)


def test_seeds_depend_neither_on_threads_nor_on_leaves(rng):
    points, weights = blobs(rng, n=200), rng.exponential(size=200)
    first = seeds(points, 8, 5, weights)
    for leaf, n_threads in ((64, 3), (100, 2), (1000, 1), (1, 2)):
        again = seeds(points, 8, 5, weights, leaf=leaf, n_threads=n_threads)
        np.testing.assert_array_equal(first, again)


def test_the_number_of_passes_does_not_grow_with_k(rng, monkeypatch):
    fold, passes = ChunkedSession.fold, []

    def counted(session, over):
        passes.extend([over] if isinstance(over, Oversampling) else [])
        assert isinstance(over, Oversampling) or session.layout.n_rows < 600  # among candidates
        return fold(session, over)

    monkeypatch.setattr(ChunkedSession, "fold", counted)
    for k in (2, 8, 50):
        passes.clear()
        with opened(blobs(rng)) as session:
            kmeans_parallel(session, k, np.random.RandomState(0))
        assert len(passes) == ROUNDS + 1
        assert sum(len(p.fresh) for p in passes) < 1.5 * ROUNDS * OVERSAMPLING * k + 10


def test_after_lloyd_it_is_as_good_as_kmeans_plusplus(rng):
    """Mean inertia over 60 fits of mixtures, within three percent and two standard errors."""
    inertias = {"k-means++": [], "k-means||": []}
    for problem in range(3):
        points = blobs(rng, n=900, k=12)
        scale = lf.KMeans(12, n_init=10, random_state=0).fit(points).inertia_
        for name, found in inertias.items():
            for seed in range(20):
                model = lf.KMeans(12, init=name, random_state=100 * problem + seed).fit(points)
                found.append(model.inertia_ / scale)
    mine, greedy = inertias["k-means||"], inertias["k-means++"]
    error = np.hypot(stats.sem(mine), stats.sem(greedy))
    assert np.mean(mine) <= 1.03 * np.mean(greedy) + 2 * error


def test_a_point_without_weight_is_never_drawn(rng):
    points = blobs(rng, n=60)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    for seed in range(30):
        rows = [int((points == center).all(axis=1).argmax()) for center in
                seeds(points, 6, seed, weights, leaf=7)]  # fmt: skip
        assert weights[rows].all()


def test_weight_two_is_drawn_twice_as_often():
    """Far apart points at equal distance of the first candidate, expected numbers 1/2 and 1."""
    points = np.concatenate([np.zeros((1, 2)), np.tile([[3.0, 0.0], [0.0, 3.0]], (50, 1))])
    weights = np.concatenate([[1.0], np.tile([1.0, 2.0], 50)])
    light = heavy = 0
    with opened(points, weights) as session:
        for seed in range(200):
            fold = Oversampling(torch.zeros(1, 2).double(), 0, 15, seed, 0)
            rows = session.fold(fold)[2].numpy()
            light += (rows % 2 == 1).sum()
            heavy += ((rows % 2 == 0) & (rows > 0)).sum()
    assert stats.binomtest(int(heavy), int(heavy + light), 2 / 3).pvalue > 0.01
    assert (heavy + light) / 200 == pytest.approx(15, rel=0.05)


def test_few_points_hold_nearly_all_mass():
    """Each round draws the far ones only; rounds go on until there are k candidates."""
    points = np.concatenate([np.linspace(0, 1, 30), 10.0 ** np.arange(3, 13)])[:, None]
    found = seeds(points, 12, 0)
    assert len(np.unique(found)) == 12


def test_fewer_distinct_points_than_clusters():
    points = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    found = seeds(points, 5, 0)
    assert found.shape == (5, 1)
    assert set(found.ravel()) == {0.0, 5.0, 9.0}


def test_every_point_may_be_a_seed(rng):
    points = rng.normal(size=(12, 2))
    assert len(np.unique(seeds(points, 12, 1), axis=0)) == 12


def test_a_single_cluster(rng):
    points = rng.normal(size=(40, 2))
    for seed in range(10):
        assert (points == seeds(points, 1, seed)).all(axis=1).any()


@pytest.mark.parametrize(
    "kind",
    [lf.KMeans, lf.SoftKMeans, lf.SphericalKMeans, lf.TrimmedKMeans, lf.RobustKMeans, lf.KMedoids,
     lf.RelocatingKMeans, lf.CircuitClusterer],
)  # fmt: skip
def test_every_estimator_takes_it(kind, rng):
    points = blobs(rng, n=90, k=3) + 20
    fit = partial(kind, 3, init="k-means||", max_iter=5, random_state=0)
    one, again = fit().fit(points), fit().fit(points)
    assert one._n_init == 1
    np.testing.assert_array_equal(one.cluster_centers_, again.cluster_centers_)


def test_many_problems_at_once_do_not(rng):
    with pytest.raises(ValueError, match=r"init: found 'k-means\|\|'.*one large problem"):
        lf.fit_batch(rng.normal(size=(2, 10, 2)), 2, init="k-means||")
