"""Distances, the objective, and means of clusters with a fallback for those without mass."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from lloydformer.numerics import clusters
from lloydformer.numerics.clusters import (
    kmeans_objective,
    log_kmeans_objective,
    means_or,
    squared_distances,
)

SUMS = torch.tensor([[2.0, 4.0], [0.0, 0.0], [-3.0, 9.0]])
MASSES = torch.tensor([2.0, 0.0, 3.0])
OTHERWISE = torch.tensor([[7.0, 7.0], [8.0, 9.0], [7.0, 7.0]])
EXPECTED = torch.tensor([[1.0, 2.0], [8.0, 9.0], [-1.0, 3.0]])


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)], ids=str)
def test_means_by_hand_for_any_batch_axes(batch):
    parts = [part.expand(*batch, *part.shape) for part in (SUMS, MASSES, OTHERWISE)]
    found = means_or(*parts)
    assert torch.equal(found, EXPECTED.expand(*batch, 3, 2))


def test_problems_of_a_batch_do_not_affect_each_other():
    generator = torch.Generator().manual_seed(0)
    sums, otherwise = torch.randn(2, 5, 4, 3, generator=generator).unbind()
    masses = torch.randint(0, 3, (5, 4), generator=generator).float()
    together = means_or(sums, masses, otherwise)
    for problem in range(5):
        alone = means_or(sums[problem], masses[problem], otherwise[problem])
        assert torch.equal(together[problem], alone)


def test_fractions_of_mass_divide_too():
    found = means_or(torch.tensor([[0.5]]), torch.tensor([0.25]), torch.tensor([[9.0]]))
    assert found.item() == 2.0


@pytest.mark.parametrize("masses", [torch.zeros(3), torch.full((3,), 1e-30)])
def test_the_result_is_finite_for_no_mass_and_for_tiny_masses(masses):
    assert torch.isfinite(means_or(torch.zeros(3, 2), masses, OTHERWISE)).all()


def test_objective_by_hand():
    points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [10.0, 1.0]])
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0]])
    assert kmeans_objective(points, centers).item() == 0 + 25 + 1


def test_problems_of_a_batch_are_independent(rng):
    points, centers = (
        torch.tensor(rng.normal(size=(3, 20, 4))),
        torch.tensor(rng.normal(size=(3, 5, 4))),
    )
    alone = torch.stack([kmeans_objective(x, c) for x, c in zip(points, centers, strict=True)])
    assert torch.equal(kmeans_objective(points, centers), alone)


def test_equals_the_inertia_of_scikit_learn(rng):
    points = rng.normal(size=(60, 3))
    fitted = KMeans(4, n_init=1, random_state=0).fit(points)
    ours = kmeans_objective(torch.tensor(points), torch.tensor(fitted.cluster_centers_))
    assert np.isclose(ours.item(), fitted.inertia_, rtol=1e-12)


def test_the_logarithm_is_natural():
    points, centers = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0]])
    assert log_kmeans_objective(points, centers).item() == torch.tensor(4.0).log().item()


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_distances_equal_scipys(q, m, d, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(q, d)), rng.normal(size=(m, d))
    found = squared_distances(torch.tensor(queries), torch.tensor(keys))
    np.testing.assert_allclose(found, cdist(queries, keys, "sqeuclidean"), rtol=1e-12)


def test_equal_rows_are_at_distance_zero_at_any_shift(rng):
    rows = torch.tensor(rng.normal(size=(50, 5)) + 1e8)
    found = squared_distances(rows, rows)
    assert (found.diagonal() == 0).all()
    assert (found + torch.eye(50) > 0).all()


def test_nearly_equal_points_have_positive_distances():
    rows = torch.tensor([[1.0], [1.0 + 1e-15]], dtype=torch.float64)
    assert (squared_distances(rows, rows) > 0).tolist() == [[False, True], [True, False]]


def test_block_size_does_not_change_distances(rng, monkeypatch):
    queries, keys = torch.tensor(rng.normal(size=(2, 3, 40, 4))).unbind(0)
    whole = squared_distances(queries, keys)
    monkeypatch.setattr(clusters, "_BLOCK", 100)  # two rows of forty scores at a time
    assert torch.equal(squared_distances(queries, keys), whole)
