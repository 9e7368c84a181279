"""Straight-through: the weights of one activation, the gradient of another."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from lloydformer.circuits.activations import (
    Context,
    FirstOfEquals,
    Gumbel,
    LimitingSoftmax,
    Linear,
    Lots,
    NormMax,
    Ranked,
    Softmax,
    Sparsemax,
    StraightThrough,
    TopK,
)
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.heads import Attention, Head
from lloydformer.circuits.projections import on
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.subspaces import POSITION, Space

HARD = [
    LimitingSoftmax(),
    LimitingSoftmax("first"),
    Gumbel(),
    Ranked(),
    Ranked(1),
    FirstOfEquals(),
    Lots(),
    NormMax(keep=0.6),
    NormMax(0.5),
    TopK(1),
]
SOFT = [Softmax(0.7), Softmax(30.0), Gumbel(0.5), Sparsemax(0.4), Linear()]
rows = st.lists(st.integers(1, 40).map(lambda i: i / 4), min_size=3, max_size=7)


def noisy(scores):
    """A context with noise that does not depend on when it is drawn."""
    steps = torch.arange(scores.numel(), dtype=scores.dtype).view(scores.shape)
    return Context(tolerance=0.1, gap=3.0, noise=lambda like: (7 * steps).sin())


@pytest.mark.parametrize("activation", HARD, ids=str)
@given(row=rows)
def test_forward_it_is_the_activation_bit_for_bit(activation, row):
    scores = torch.tensor([row], dtype=torch.float64, requires_grad=True)
    weights = StraightThrough(activation, Softmax(3.0))(scores, noisy(scores))
    assert weights.requires_grad
    assert torch.equal(weights, activation(scores.detach(), noisy(scores)))


@pytest.mark.parametrize("backward", SOFT, ids=str)
@pytest.mark.parametrize("activation", HARD, ids=str)
def test_backward_it_has_the_gradient_of_the_other(activation, backward, rng):
    scores = torch.tensor(rng.uniform(0.1, 3, size=(2, 3, 5)), requires_grad=True)
    along = torch.tensor(rng.normal(size=(2, 3, 5)))
    found, expected = (
        torch.autograd.grad(part(scores, noisy(scores)), scores, along)[0]
        for part in (StraightThrough(activation, backward), backward)
    )
    assert torch.equal(found, expected)
    assert expected.any()


def test_where_both_are_the_same_it_is_the_true_gradient(rng):
    scores = torch.tensor(rng.normal(size=(2, 3, 4)), requires_grad=True)
    assert gradcheck(StraightThrough(Softmax(1.7), Softmax(1.7)), scores)
    assert torch.autograd.gradgradcheck(StraightThrough(Softmax(1.7), Softmax(1.7)), scores)


def test_scores_that_are_not_finite_do_not_reach_the_weights():
    """Soft-max of them is not a number, but only its gradient is used."""
    scores = torch.tensor([[torch.inf, 0.0]], requires_grad=True)
    assert StraightThrough(LimitingSoftmax())(scores).tolist() == [[1.0, 0.0]]


def test_without_gradients_the_other_is_not_computed():
    class Never(Softmax):
        def __call__(self, scores, context=None):
            raise AssertionError

    part, scores = StraightThrough(LimitingSoftmax(), Never()), torch.tensor([[1.0, 2.0]])
    assert part(scores).tolist() == [[0.0, 1.0]]
    with torch.no_grad():
        assert part(scores.requires_grad_()).tolist() == [[0.0, 1.0]]


def test_a_head_gets_gradients_of_both(rng):
    """Query and key as with soft-max, value as with the hard choice."""
    space = Space(((POSITION, 3),))
    tokens, sources = (torch.tensor(rng.normal(size=(m, 3))) for m in (4, 6))
    along = torch.tensor(rng.normal(size=(4, 3)))

    def gradients(activation):
        here = on(POSITION)
        attention = Attention(Head(DotProduct(), activation, here, here, here), space)
        weights = {n: b.clone().requires_grad_() for n, b in attention.named_buffers()}
        out = torch.func.functional_call(attention, weights, (tokens, sources))
        found = torch.autograd.grad(out, list(weights.values()), along, allow_unused=True)
        return dict(zip(weights, found, strict=True))

    hard, soft = gradients(LimitingSoftmax()), gradients(Softmax(2.0))
    both = gradients(StraightThrough(LimitingSoftmax(), Softmax(2.0)))
    assert (hard["query"], hard["key"]) == (None, None)
    assert torch.equal(both["query"], soft["query"])
    assert torch.equal(both["key"], soft["key"])
    assert torch.equal(both["value"], hard["value"])


@pytest.mark.parametrize("activation", HARD, ids=str)
def test_it_is_described_as_the_activation_of_the_forward_pass(activation):
    part = StraightThrough(activation)
    assert isinstance(part, HeadActivation)
    assert (part.short, part.symbol) == (activation.short, activation.symbol)
    assert part.ties == getattr(activation, "ties", None)
    assert forward_of(part) is activation
    assert forward_of(activation) is activation


@pytest.mark.parametrize("wrong", ["softmax", None, 3.0])
def test_what_is_not_an_activation_is_refused(wrong):
    with pytest.raises((ValueError, TypeError)):
        StraightThrough(wrong)
    with pytest.raises((ValueError, TypeError)):
        StraightThrough(LimitingSoftmax(), wrong)
