"""Tokens and codes, worked by hand for d = 2 and k = 3."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.circuits.tokens import Binary, OneHot, lifted, lifted_with_affinity, plain

POINTS = torch.tensor([[3.0, -4.0], [1.0, 0.0]])
CENTERS = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
ASSIGNMENTS = torch.tensor([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])


def test_plain_points_by_hand():
    found = plain().encoder(POINTS, ASSIGNMENTS)
    assert found.tolist() == [[3, -4, 0, 0.5, 0.5], [1, 0, 1, 0, 0]]


def test_plain_centers_by_hand():
    found = plain().decoder(CENTERS)
    assert found.tolist() == [[0, 0, 1, 0, 0], [1, 2, 0, 1, 0], [3, 1, 0, 0, 1]]


def test_lifted_points_by_hand():
    found = lifted().encoder(POINTS, ASSIGNMENTS)
    assert found.tolist() == [[3, -4, 25, -0.5, 0, 0.5, 0.5], [1, 0, 1, -0.5, 1, 0, 0]]


def test_lifted_centers_with_affinity_by_hand():
    found = lifted_with_affinity().decoder(CENTERS)
    assert found[1].tolist() == [1, 2, 5, -0.5, 0, 1, 0, 0, 1, 0]


def test_points_have_no_affinity_yet():
    found = lifted_with_affinity().encoder(POINTS, ASSIGNMENTS)
    assert found[0].tolist() == [3, -4, 25, -0.5, 0, 0.5, 0.5, 0, 0, 0]


def test_binary_codes_by_hand():
    assert Binary().table(5).tolist() == [
        [-1, -1, -1],
        [1, -1, -1],
        [-1, 1, -1],
        [1, 1, -1],
        [-1, -1, 1],
    ]


def test_binary_centers_by_hand():
    found = plain(Binary()).decoder(CENTERS)
    assert found.tolist() == [[0, 0, -1, -1], [1, 2, 1, -1], [3, 1, -1, 1]]


@given(st.integers(1, 130))
def test_dot_product_of_binary_codes_is_largest_for_equal_codes(k):
    codes = Binary().table(k)
    products = codes @ codes.mT
    assert (products.diag() == codes.shape[1]).all()
    assert (products - 2 * codes.shape[1] * torch.eye(k) < codes.shape[1]).all()


@given(st.integers(1, 40), st.integers(1, 130))
def test_dimensions(d, k):
    """d + k, d + k + 2, d + 2k + 2, and d + ceil(log2 k)."""
    assert plain().space(d, k).dim == d + k
    assert lifted().space(d, k).dim == d + k + 2
    assert lifted_with_affinity().space(d, k).dim == d + 2 * k + 2
    assert plain(Binary()).space(d, k).dim == d + max(1, math.ceil(math.log2(k)))


@pytest.mark.parametrize("tokens", [plain(), lifted(), lifted_with_affinity(), plain(Binary())])
def test_a_batch_equals_its_problems_one_by_one(tokens, rng):
    points = torch.tensor(rng.normal(size=(4, 5, 2)))
    assignments = torch.tensor(rng.random((4, 5, 3)))
    batch = tokens.encoder(points, assignments)
    for i in range(4):
        assert torch.equal(batch[i], tokens.encoder(points[i], assignments[i]))
    centers = torch.stack([CENTERS, CENTERS + 1])
    assert torch.equal(tokens.decoder(centers)[1], tokens.decoder(CENTERS + 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tokens_have_the_dtype_of_the_points(dtype):
    assert lifted().decoder(CENTERS.to(dtype)).dtype == dtype
    assert lifted().encoder(POINTS.to(dtype), ASSIGNMENTS.to(dtype)).dtype == dtype


def test_one_hot_is_the_default_code():
    assert plain() == plain(OneHot()) != plain(Binary())
