"""Blocks of tensors and of CSR matrices: ranges of rows that can be read repeatedly."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lloydformer.data.blocks import Blocks, TensorBlocks, leaf_ranges
from lloydformer.data.sparse_blocks import SparseBlocks

X = np.arange(14.0).reshape(7, 2) + 1
WEIGHTS = torch.arange(7.0).double()


def tensors(**how) -> TensorBlocks:
    return TensorBlocks(torch.tensor(X), WEIGHTS, leaf=3, **how)


def sparsely(**how) -> SparseBlocks:
    return SparseBlocks(sparse.csr_matrix(X), WEIGHTS, leaf=3, **how)


@pytest.fixture(params=[tensors, sparsely])
def make(request):
    return request.param


@given(st.integers(1, 40), st.integers(1, 12))
def test_leaves_follow_each_other_and_cover_every_row_once(n, leaf):
    data = TensorBlocks(torch.zeros(n, 1), leaf=leaf)
    rows = [row for start, stop in leaf_ranges(data.layout) for row in range(start, stop)]
    assert rows == list(range(n))
    assert all(stop - start == leaf for start, stop in list(leaf_ranges(data.layout))[:-1])


def test_they_implement_the_protocol(make):
    data = make()
    assert isinstance(data, Blocks)
    layout = data.layout
    assert (layout.n_rows, layout.n_features, layout.dtype) == (7, 2, torch.float64)
    assert layout.device == torch.device("cpu")


def test_blocks_plus_the_origin_are_the_rows(make):
    data = make()
    for start, stop in leaf_ranges(data.layout):
        rows = data.read(start, stop).take(torch.arange(stop - start)) + data.layout.origin
        np.testing.assert_array_equal(rows, X[start:stop])
        assert data.weights(start, stop).tolist() == list(range(start, stop))


def test_rows_are_taken_by_their_global_numbers(make):
    data = make()
    taken = data.take(torch.tensor([6, 0])) + data.layout.origin
    np.testing.assert_array_equal(taken, X[[6, 0]])


def test_the_origin_of_directions_is_zero(make):
    data = make(directions=True)
    assert data.layout.origin.tolist() == [0, 0]
    expected = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(data.take(torch.arange(7)), expected)
    rows = data.read(3, 6)
    np.testing.assert_allclose(rows.take(torch.arange(3)), expected[3:6])


def test_an_origin_may_be_given_and_weights_may_be_missing():
    data = TensorBlocks(torch.tensor(X), given_origin=torch.tensor([1.0, 2.0]).double())
    assert data.take(torch.tensor([0])).tolist() == [[0, 0]]
    assert data.weights(0, 7) is None


def test_a_tensor_is_sliced_not_copied():
    """A change of the tensor is visible in the blocks."""
    points = torch.zeros(10, 2)
    data = TensorBlocks(points, leaf=4, given_origin=torch.zeros(2))
    points[9] = 5.0
    assert data.read(8, 10).take(torch.tensor([1])).tolist() == [[5.0, 5.0]]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sparse_blocks_keep_their_precision(kind):
    data = SparseBlocks(sparse.csr_matrix(X.astype(kind)))
    assert str(data.layout.dtype) == f"torch.{np.dtype(kind).name}"
    assert data.read(0, 7).squared_norms().dtype == data.layout.dtype


def test_rows_without_a_number_but_zero():
    """Empty ones, and those that store zeros."""
    stored = np.array([1.0, 0.0, 0.0, 2.0, 0.0]), np.array([0, 1, 2, 0, 2]), [0, 0, 2, 3, 3, 5]
    data = SparseBlocks(sparse.csr_matrix(stored, shape=(5, 3)))
    assert data.zero_rows(0, 5).tolist() == [0, 2, 3]
    assert data.zero_rows(2, 4).tolist() == [2, 3]
    assert data.zero_rows(1, 2).tolist() == []
