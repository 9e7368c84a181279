"""Euclidean and dot-product scores."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.numerics import distances
from lloydformer.numerics.distances import squared_distances

QUERIES = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
KEYS = torch.tensor([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]])


def test_euclidean_by_hand():
    assert Euclidean()(QUERIES, KEYS).tolist() == [[-25, -1, -1], [0, -18, -32]]


def test_dot_product_by_hand():
    assert DotProduct()(QUERIES, KEYS).tolist() == [[0, 0, 0], [25, 4, -3]]


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
    monkeypatch.setattr(distances, "_BLOCK", 100)  # two rows of forty scores at a time
    assert torch.equal(squared_distances(queries, keys), whole)


@pytest.mark.parametrize("score", [Euclidean(), DotProduct()])
def test_a_batch_equals_its_problems_one_by_one(score, rng):
    queries = torch.tensor(rng.normal(size=(3, 5, 4)))
    keys = torch.tensor(rng.normal(size=(3, 6, 4)))
    alone = torch.stack([score(q, k) for q, k in zip(queries, keys, strict=True)])
    torch.testing.assert_close(score(queries, keys), alone, rtol=0, atol=1e-14)


def test_gradients(rng):
    queries = torch.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    keys = torch.tensor(rng.normal(size=(5, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(Euclidean(), (queries, keys))
    assert torch.autograd.gradcheck(DotProduct(), (queries, keys))
