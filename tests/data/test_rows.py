"""Dense and sparse rows give the same results, equal to the formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lloydformer.data.rows import DenseRows, Rows, SparseRows
from lloydformer.numerics.clusters import add_by_label

X = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
CENTERS = torch.tensor([[1.0, 1.0], [0.0, 3.0]]).double()
LABELS = torch.tensor([0, 1, 1, 0])


@pytest.fixture(params=["dense", "matrix", "array"])
def rows(request) -> Rows:
    if request.param == "dense":
        return DenseRows(torch.tensor(X), None)
    kind = sparse.csr_matrix if request.param == "matrix" else sparse.csr_array
    return SparseRows(kind(X))


def test_they_implement_the_protocol(rows):
    assert isinstance(rows, Rows)


def test_scores_by_hand(rows):
    """|c|^2 is 2 and 9; less twice the products 1, 7, 2, 0 and 0, 12, 6, 0."""
    assert rows.scores(CENTERS).tolist() == [[0, 9], [-12, -15], [-2, -3], [2, 9]]


def test_squared_norms_and_distances_by_hand(rows):
    assert rows.squared_norms().tolist() == [1, 25, 4, 0]
    assert rows.squared_distances(CENTERS, LABELS).tolist() == [1, 10, 1, 2]


def test_sums_by_hand(rows):
    assert rows.sums(LABELS, 3, None).tolist() == [[1, 0], [3, 6], [0, 0]]
    weights = torch.tensor([2.0, 1.0, 0.5, 7.0]).double()
    assert rows.sums(LABELS, 2, weights).tolist() == [[2, 0], [3, 5]]


def test_mixtures_by_hand(rows):
    shares = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0], [1.0, 1.0]]).double()
    assert rows.weighted_sums(shares).tolist() == [[2.5, 2.0], [1.5, 6.0]]


def test_taken_rows_are_dense(rows):
    assert rows.take(torch.tensor([2, 0, 2])).tolist() == [[0, 2], [1, 0], [0, 2]]


def test_directions_are_unit_vectors_and_zeros_stay(rows):
    found = rows.directions().take(torch.arange(4))
    np.testing.assert_allclose(found, [[1, 0], [0.6, 0.8], [0, 1], [0, 0]])
    assert rows.squared_norms().tolist() == [1, 25, 4, 0]


def test_dense_rows_subtract_the_origin():
    rows = DenseRows(torch.tensor(X), torch.tensor([1.0, 0.0]).double())
    assert rows.squared_norms().tolist() == [0, 20, 5, 1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 3))
def test_add_by_label_equals_a_loop(labels, width):
    values = torch.randn(len(labels), width, generator=torch.Generator().manual_seed(1)).double()
    expected = torch.zeros(5, width).double()
    for label, value in zip(labels, values, strict=True):
        expected[label] += value
    assert torch.equal(add_by_label(values, torch.tensor(labels), 5), expected)
