"""The moves on rows in memory: compared with the plain search, with losses, and with FasterPAM."""

import kmedoids
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances

from lloydformer.algorithms.medoid_search import MedoidSearch
from lloydformer.plans.medoid_moves import METRICS, InMemorySearch, MatrixDistances, PointDistances
from lloydformer.plans.medoid_search import EFFORTS, relocating_rounds, swapping_rounds


def mixture(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, size=(6, d))[rng.integers(6, size=n)] + rng.normal(size=(n, d))


def unit_rows(X: np.ndarray, metric: str) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X


def loss(distances: np.ndarray, medoids: np.ndarray) -> float:
    return float(distances[:, medoids].min(axis=1).sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(60, 3, 1), (90, 2, 4), (100, 5, 9)])
@pytest.mark.parametrize("metric", METRICS)
def test_a_search_is_that_of_the_plain_algorithm(metric, n, d, k, weighted):
    """The same medoids and losses after every move, through the schedule of a whole search.

    The plain search finds every gain as a difference of losses, and its order of moves is its own.
    """
    points, rng = unit_rows(mixture(n, d, seed=k), metric), np.random.default_rng(k)
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else None
    start = rng.choice(n if weights is None else np.flatnonzero(weights), k, replace=False)
    search = InMemorySearch(PointDistances(points, metric), weights)
    plain = MedoidSearch(points, metric, weights)
    for one in (search, plain):
        one.begin(start)
    assert search.loss == pytest.approx(plain.loss, rel=1e-12)
    effort = EFFORTS["medium"]
    patience = effort.patience_for(n, k) if k > 1 else 0
    losses = plain.run(7, effort.quiet, patience, effort.reach(n, k), first=3)
    count = 0
    for _ in relocating_rounds(search, effort, 7, n, first=3):
        assert search.loss == pytest.approx(next(losses), rel=1e-12)
        assert search.medoids.tolist() == plain.medoids.tolist()
        count += 1
    assert next(losses, None) is None
    assert count > effort.quiet


@pytest.mark.parametrize("make", [InMemorySearch, MedoidSearch])
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(METRICS), st.integers(1, 6), st.booleans())
def test_no_move_raises_the_loss(make, seed, metric, k, ties):
    """Also with many equal rows and distances, and k near the number of distinct rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(25, 2)) + 0.5 if ties else rng.normal(size=(25, 2))
    points = unit_rows(X, metric).astype(float)
    plain = make is MedoidSearch
    search = make(points, metric) if plain else make(PointDistances(points, metric))
    search.begin(rng.choice(25, k, replace=False))
    before, distances = search.loss, pairwise_distances(X, metric=metric)
    for _ in relocating_rounds(search, EFFORTS["medium"], seed, 25):
        assert len(set(search.medoids)) == k
        assert search.loss <= before * (1 + 1e-12) + 1e-12
        assert search.loss == pytest.approx(loss(distances, search.medoids), abs=1e-9)
        before = search.loss


def test_the_gains_are_differences_of_losses():
    X = mixture(40, 2)
    search, distances = (
        InMemorySearch(PointDistances(X)),
        pairwise_distances(X, metric="sqeuclidean"),
    )
    plain = MedoidSearch(X)
    for k in (1, 4):
        search.begin(np.arange(k))
        plain.begin(np.arange(k))
        gains = search.gains(np.arange(10, 16))
        np.testing.assert_allclose(gains, plain.gains(np.arange(10, 16)), atol=1e-9)
        for c, x in enumerate(range(10, 16)):
            for j in range(k):
                medoids = np.where(np.arange(k) == j, x, np.arange(k))
                assert gains[c, j] == pytest.approx(search.loss - loss(distances, medoids))
    rows = np.flatnonzero(search.table.first == 0)
    part = search.gains(np.arange(10, 16), rows)
    assert (part <= gains + 1e-9).all()
    np.testing.assert_allclose(part, plain.gains(np.arange(10, 16), rows), atol=1e-9)


def test_swaps_on_a_matrix_end_where_fasterpam_finds_nothing():
    distances = pairwise_distances(mixture(150, 3))
    search = InMemorySearch(MatrixDistances(distances))
    search.begin(np.arange(6))
    list(swapping_rounds(search, 150))
    again = kmedoids.fasterpam(distances, search.medoids.astype(np.uint64))
    assert again.n_swap == 0
    assert search.loss == pytest.approx(again.loss)
