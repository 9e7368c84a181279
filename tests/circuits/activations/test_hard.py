"""Limiting soft-max and Gumbel soft-max."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.autograd import gradcheck

from lloydformer.circuits.activations import Context, Gumbel, LimitingSoftmax, Softmax
from lloydformer.numerics import noise

TIED = torch.tensor([[1.0, 3.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0], [0.0, 1.0, 2.0, 3.0]])


def test_ties_are_shared_evenly():
    expected = [[0.0, 0.5, 0.0, 0.5], [0.25] * 4, [0.0, 0.0, 0.0, 1.0]]
    assert LimitingSoftmax("average")(TIED).tolist() == expected


def test_ties_go_to_the_first():
    expected = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert LimitingSoftmax("first")(TIED).tolist() == expected


@pytest.mark.parametrize(("tolerance", "shares"), [(0.0, [1, 0, 0]), (0.05, [0.5, 0.5, 0])])
def test_scores_that_may_both_be_the_largest_are_tied(tolerance, shares):
    """0.95 +- 0.05 and 1 +- 0.05 overlap, 0.85 +- 0.05 and 1 +- 0.05 do not."""
    scores = torch.tensor([[1.0, 0.95, 0.85]])
    assert LimitingSoftmax()(scores, Context(tolerance=tolerance)).tolist() == [shares]


def test_each_score_has_its_own_tolerance():
    """-8 +- 6 and -3 +- 1 may both be -2 or less; -4.6 +- 0.5 is certainly below -4."""
    scores, tolerance = torch.tensor([[-3.0, -4.6, -8.0]]), torch.tensor([[1.0, 0.5, 6.0]])
    assert LimitingSoftmax()(scores, Context(tolerance=tolerance)).tolist() == [[0.5, 0.0, 0.5]]


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
def test_it_is_the_limit_of_softmax(row):
    scores = torch.tensor([row], dtype=torch.float64)
    limit = LimitingSoftmax()(scores)
    for gamma in (10.0, 20.0, 1e6):  # whole numbers differ by 1 or not at all
        left = len(row) * math.exp(-gamma)
        torch.testing.assert_close(Softmax(gamma)(scores), limit, rtol=0, atol=left + 1e-15)


def draw(gumbel, scores, n_draws):
    """Return the weights of one row of scores in many independent draws."""
    draws = noise.gumbel(3, 0, "decoder_cross", n_draws, torch.arange(scores.numel()))
    return gumbel(scores.expand(n_draws, -1), Context(noise=lambda like: draws))


def test_gumbel_in_the_limit_samples_with_probabilities_of_softmax():
    scores = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64)
    counts = draw(Gumbel(), scores, 20_000).sum(dim=0)
    expected = 20_000 * scores.softmax(dim=0)
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 0.01


def test_gumbel_by_hand():
    scores, noisy = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.5]])
    context = Context(noise=lambda like: noisy)
    expected = torch.tensor([[2.0, 3.0]]).softmax(dim=-1)  # (1 + 0) / 0.5, (0 + 1.5) / 0.5
    torch.testing.assert_close(Gumbel(0.5)(scores, context), expected)
    assert Gumbel(0.0)(scores, context).tolist() == [[0.0, 1.0]]


def test_gumbel_at_a_low_temperature_is_near_its_limit():
    scores = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64)
    apart = (draw(Gumbel(1e-4), scores, 500) - draw(Gumbel(), scores, 500)).abs().amax(dim=1)
    assert apart.median() < 1e-9


def test_gumbel_without_noise_asks_for_a_seed():
    with pytest.raises(ValueError, match="seed: found None; Gumbel attention draws noise, pass"):
        Gumbel()(torch.zeros(1, 2))


def test_gumbel_gradient(rng):
    scores = torch.tensor(rng.normal(size=(2, 3, 4)), requires_grad=True)
    draws = torch.tensor(rng.gumbel(size=(2, 3, 4)))
    assert gradcheck(lambda s: Gumbel(0.7)(s, Context(noise=lambda like: draws)), scores)
