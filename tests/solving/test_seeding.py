"""Seeds: the same quality as scikit-learn's, never a point without weight."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.cluster import kmeans_plusplus as theirs

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.solving.seeding import kmeans_plusplus, random_rows

N_SEEDS = 25


def seeds(points, k, seed, weights=None, leaf=64):
    """Rows drawn by greedy k-means++."""
    weights = None if weights is None else torch.tensor(weights)
    data = TensorBlocks(torch.tensor(points), weights, leaf)
    with Chunked(1).open(data) as session:
        return kmeans_plusplus(session, k, np.random.RandomState(seed)).numpy()


def rows_at_random(data, k, seed):
    with Chunked(1).open(data) as session:
        return random_rows(session, k, np.random.RandomState(seed)).numpy()


def potential(points, centers, weights=None) -> float:
    """The k-means objective before any iteration."""
    squares = ((points[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1)
    return float(squares.sum() if weights is None else (weights * squares).sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["blobs", "cloud"])
def test_seeds_are_as_good_as_scikit_learns(shape, weighted, rng):
    points = rng.normal(size=(300, 3))
    if shape == "blobs":
        points += rng.uniform(-8, 8, size=(8, 3))[rng.integers(8, size=300)]
    weights = rng.exponential(size=300) if weighted else None
    mine, other = [], []
    for seed in range(N_SEEDS):
        mine.append(potential(points, points[seeds(points, 8, seed, weights)], weights))
        centers, _ = theirs(points, 8, sample_weight=weights, random_state=seed + N_SEEDS)
        other.append(potential(points, centers, weights))
    error = np.hypot(stats.sem(mine), stats.sem(other))
    assert abs(np.mean(mine) - np.mean(other)) <= 0.03 * np.mean(other) + 2 * error


def test_greedy_seeds_are_better_than_random_ones(rng):
    points = (
        rng.normal(size=(200, 2)) + rng.uniform(-20, 20, size=(6, 2))[rng.integers(6, size=200)]
    )
    data = TensorBlocks(torch.tensor(points))
    greedy = [potential(points, points[seeds(points, 6, s)]) for s in range(20)]
    blind = [potential(points, points[rows_at_random(data, 6, s)]) for s in range(20)]
    assert np.mean(greedy) < 0.5 * np.mean(blind)


def test_a_point_without_weight_is_never_drawn(rng):
    points = rng.normal(size=(40, 2))
    weights = np.where(np.arange(40) % 3 == 0, 0.0, 1.0)
    data = TensorBlocks(torch.tensor(points), torch.tensor(weights), leaf=7)
    for seed in range(30):
        drawn = seeds(points, 6, seed, weights, leaf=7)
        blind = rows_at_random(data, 6, seed)
        assert weights[drawn].all()
        assert weights[blind].all()


def test_also_where_all_points_with_weight_coincide():
    """Every distance is 0, so every quantile of the mass is; the last row has no weight."""
    points, weights = np.array([[0.0], [0.0], [0.0], [5.0]]), np.array([1.0, 1.0, 1.0, 0.0])
    for seed in range(10):
        assert weights[seeds(points, 2, seed, weights)].all()


def test_seeds_are_different_points_where_there_are_enough(rng):
    points = rng.normal(size=(12, 2))
    for seed in range(20):
        assert len(set(seeds(points, 12, seed, leaf=5))) == 12


def test_the_first_seed_is_drawn_by_weight():
    """Weights 1 and 3: a quarter and three quarters of 200 draws."""
    points, weights = np.array([[0.0], [1.0]]), np.array([1.0, 3.0])
    first = [seeds(points, 1, seed, weights)[0] for seed in range(200)]
    assert stats.binomtest(first.count(1), 200, 0.75).pvalue > 0.01


def test_the_second_is_drawn_by_squared_distance():
    """From 0, the points 1 and 3 have masses 1 and 9; the better of two candidates is kept."""
    points = np.array([[0.0], [1.0], [3.0]])
    drawn = [seeds(points, 2, seed) for seed in range(300)]
    second = [rows[1] for rows in drawn if rows[0] == 0]
    expected = 1 - 0.1**2  # 3 leaves the potential 1, and 1 the potential 4
    assert stats.binomtest(second.count(2), len(second), expected).pvalue > 0.01


def test_random_rows_are_different_rows(rng):
    data = TensorBlocks(torch.tensor(rng.normal(size=(9, 2))))
    assert sorted(rows_at_random(data, 9, 0).tolist()) == list(range(9))
