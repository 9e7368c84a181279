"""init="robust": seeds among the clusters, although k-means++ would take the outliers."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.solving.seeding import kmeans_plusplus, kmeans_robust

MIDDLES = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0]])


def crowd(n, share, seed=0):
    """Four clusters, and outliers uniform within 500 of the origin."""
    rng = np.random.default_rng(seed)
    rows = MIDDLES[np.arange(n) % 4] + rng.normal(size=(n, 2))
    rows[: int(share * n)] = rng.uniform(-500, 500, size=(int(share * n), 2))
    return rows


def seeds(rows, k, seed, weights=None, of=kmeans_robust):
    weights = None if weights is None else torch.from_numpy(weights)
    with Chunked(1).open(TensorBlocks(torch.from_numpy(rows), weights, 512)) as session:
        found = of(session, k, np.random.RandomState(seed))
        found = found if of is kmeans_robust else session.gather(found)
        return (found + session.layout.origin).numpy()


def covered(found):
    """Middles that have a seed within 5."""
    away = np.linalg.norm(found[:, None] - MIDDLES, axis=2)
    return int((away.min(axis=0) < 5).sum())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.18])
def test_every_cluster_has_a_seed(share):
    rows = crowd(1000, share)
    assert all(covered(seeds(rows, 4, seed)) == 4 for seed in range(20))


def test_plain_seeding_takes_outliers():
    rows = crowd(1000, 0.1)
    assert all(covered(seeds(rows, 4, seed, of=kmeans_plusplus)) < 4 for seed in range(20))


def test_a_sample_of_many_rows_is_enough():
    assert covered(seeds(crowd(60_000, 0.1), 4, 0)) == 4


def test_rows_without_weight_are_no_seeds():
    rows = crowd(1000, 0.1)
    weights = (np.arange(1000) % 4 != 0).astype(float)  # the first cluster does not count
    found = seeds(rows, 3, 0, weights)
    assert np.linalg.norm(found, axis=1).min() > 5
    assert covered(found) == 3


def test_duplicates_and_as_many_seeds_as_rows():
    rows = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], [90, 5, 5], axis=0)
    assert len(np.unique(seeds(rows, 3, 0), axis=0)) == 3
    assert len(np.unique(seeds(rows[[0, 90, 99]], 3, 0), axis=0)) == 3


def test_trimmed_k_means_with_robust_seeds():
    rows = crowd(1000, 0.1)
    model = lf.TrimmedKMeans(4, keep=0.85, init="robust", random_state=0).fit(rows)
    assert covered(model.cluster_centers_) == 4
    assert np.isin(np.arange(100), model.outliers_).mean() > 0.95


def test_a_power_of_two_and_threads_change_no_bit():
    rows = crowd(3000, 0.1)
    one = seeds(rows, 4, 0)
    assert np.array_equal(seeds(rows * 2.0**40, 4, 0), one * 2.0**40)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1 + before % 2)
        assert np.array_equal(seeds(rows, 4, 0), one)
    finally:
        torch.set_num_threads(before)
