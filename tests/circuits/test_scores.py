"""Euclidean and dot-product scores."""

import pytest
import torch

from lloydformer.circuits.scores import DotProduct, Euclidean

QUERIES = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
KEYS = torch.tensor([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]])


def test_euclidean_by_hand():
    assert Euclidean()(QUERIES, KEYS).tolist() == [[-25, -1, -1], [0, -18, -32]]


def test_dot_product_by_hand():
    assert DotProduct()(QUERIES, KEYS).tolist() == [[0, 0, 0], [25, 4, -3]]


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
