"""Soft-max, linear and identity attention."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from torch.autograd import gradcheck

from lloydformer.circuits.activations import Identity, Linear, Softmax


def test_softmax_by_hand():
    found = Softmax(inverse_temperature=math.log(3))(torch.tensor([[0.0, 1.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.25, 0.75]]))  # 3^0 and 3^1


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0.01, 100))
def test_softmax_equals_scipys(row, gamma):
    scores = torch.tensor([row], dtype=torch.float64)
    expected = torch.tensor(special.softmax(gamma * scores.numpy(), axis=-1))
    torch.testing.assert_close(Softmax(gamma)(scores), expected, rtol=1e-12, atol=1e-300)


def test_linear_by_hand():
    scores = torch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    assert Linear()(scores).tolist() == [[0.25, 0.0, 0.75], [0.5, 0.5, 0.0]]


def test_linear_attention_of_zero_scores_is_nan():
    assert Linear()(torch.zeros(1, 3)).isnan().all()


def test_identity_returns_the_scores():
    scores = torch.tensor([[1.0, -2.0]])
    assert torch.equal(Identity()(scores), scores)


def test_gradients(rng):
    scores = torch.tensor(rng.uniform(0.1, 2, size=(2, 3, 4)), requires_grad=True)
    assert gradcheck(Softmax(1.7), scores)
    assert gradcheck(Linear(), scores)
    assert gradcheck(Identity(), scores)
