"""Sparsemax and top-k soft-max."""

import entmax
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from lloydformer.circuits.activations import Softmax, Sparsemax, TopK

rows_of_scores = st.lists(st.floats(-5, 5), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 0.0], [1.0, 0.0]),
        ([0.5, 0.0], [0.75, 0.25]),  # the threshold is -0.25
        ([1.0, 0.5, -4.0], [0.75, 0.25, 0.0]),
        ([3.0, 3.0, 0.0], [0.5, 0.5, 0.0]),
    ],
)
def test_sparsemax_by_hand(scores, expected):
    assert Sparsemax()(torch.tensor([scores])).tolist() == [expected]


@given(rows_of_scores, st.floats(0.01, 100))
def test_sparsemax_equals_entmaxs(row, gamma):
    scores = torch.tensor([row], dtype=torch.float64)
    expected = entmax.sparsemax(gamma * scores, dim=-1)
    torch.testing.assert_close(Sparsemax(gamma)(scores), expected, rtol=0, atol=1e-12)


@given(rows_of_scores)
def test_sparsemax_equals_entmaxs_by_bisection(row):
    scores = torch.tensor([row], dtype=torch.float64)
    expected = entmax.sparsemax_bisect(scores, dim=-1)
    torch.testing.assert_close(Sparsemax()(scores), expected, rtol=0, atol=1e-9)


def test_sparsemax_is_exact_far_from_zero():
    scores = torch.tensor([[-1e8, -1e8 - 0.5, -2e8]], dtype=torch.float64)
    assert Sparsemax()(scores).tolist() == [[0.75, 0.25, 0.0]]


@given(rows_of_scores, st.integers(1, 10), st.floats(0.1, 10))
def test_top_k_is_softmax_of_the_best(row, m, gamma):
    scores = torch.tensor([row], dtype=torch.float64)
    border = sorted(row)[-min(m, len(row))]
    best = scores[0] >= border
    expected = torch.zeros_like(scores[0])
    expected[best] = (gamma * scores[0, best]).softmax(dim=0)
    torch.testing.assert_close(TopK(m, gamma)(scores)[0], expected)


def test_top_k_keeps_keys_tied_with_the_last():
    assert TopK(1)(torch.tensor([[2.0, 2.0, 0.0]])).tolist() == [[0.5, 0.5, 0.0]]


def test_top_of_all_is_softmax(rng):
    scores = torch.tensor(rng.normal(size=(3, 5)))
    assert torch.equal(TopK(5, 2.0)(scores), Softmax(2.0)(scores))
    assert torch.equal(TopK(9, 2.0)(scores), Softmax(2.0)(scores))


def test_gradients(rng):
    scores = torch.tensor(rng.normal(size=(2, 3, 5)), requires_grad=True)
    assert gradcheck(Sparsemax(0.6), scores)
    assert gradcheck(TopK(3, 1.7), scores)
