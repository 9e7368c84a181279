"""Activations that select keys: the best, by rank, and at random."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.autograd import gradcheck

from lloydformer.circuits.activations import (
    Context,
    FirstOfEquals,
    Gumbel,
    LimitingSoftmax,
    Lots,
    Ranked,
    Softmax,
)
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


SCORES = torch.tensor([[3.0, 7.0, 7.0, 1.0]] * 3, dtype=torch.float64)


def test_each_query_takes_its_own_rank_and_the_first_of_equal_keys_ranks_higher():
    assert Ranked()(SCORES).argmax(dim=-1).tolist() == [1, 2, 0]
    assert Ranked()(SCORES).sum(dim=-1).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("rank", "key"), [(0, 1), (1, 2), (2, 0), (3, 3)])
def test_one_rank_for_all(rank, key):
    assert torch.equal(Ranked(rank)(SCORES), torch.eye(4).double()[[key] * 3])


def test_rank_0_is_limiting_softmax(rng):
    scores = torch.tensor(rng.integers(0, 4, size=(2, 20, 6))).double()
    assert torch.equal(Ranked(0)(scores), LimitingSoftmax("first")(scores))


def test_rank_1_is_the_best_of_the_other_keys(rng):
    scores = torch.tensor(rng.integers(0, 4, size=(2, 20, 6))).double()
    without = scores.masked_fill(LimitingSoftmax("first")(scores) > 0, -math.inf)
    assert torch.equal(Ranked(1)(scores), LimitingSoftmax("first")(without))


def test_a_rank_beyond_the_keys_is_refused():
    with pytest.raises(ValueError, match="rank: found 4 for 4 keys; the last one is 3"):
        Ranked(4)(SCORES)
    with pytest.raises(ValueError, match="rank: found 2 for 2 keys"):
        Ranked()(SCORES[:, :2])


@pytest.mark.parametrize("rank", [-1, True])
def test_a_wrong_rank_is_refused(rank):
    with pytest.raises(ValueError, match="rank: found"):
        Ranked(rank)


def drawn(power: float, scores: list[float], times: int) -> torch.Tensor:
    """Return how often each key is drawn."""
    noise = torch.Generator().manual_seed(0)

    def gumbel(scores):
        return -torch.log(-torch.log(torch.rand(scores.shape, generator=noise).double()))

    many = torch.tensor(scores, dtype=torch.float64).expand(times, 1, -1)
    return Lots(power)(many, Context(noise=gumbel)).mean(dim=(0, 1))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_lots_draws_in_proportion_to_the_power_of_the_scores(power):
    scores = [0.0, 1.0, 2.0, 5.0]
    expected = torch.tensor(scores).double() ** power
    found = drawn(power, scores, times=20_000)
    assert found[0] == 0
    torch.testing.assert_close(found, expected / expected.sum(), rtol=0, atol=0.012)


def test_lots_without_replacement_are_all_different():
    lots = Lots(2.0, Ranked())(SCORES, Context(noise=torch.zeros_like))
    assert lots.argmax(dim=-1).tolist() == [1, 2, 0]


def test_lots_need_noise():
    with pytest.raises(ValueError, match="seed: found None; this attention draws noise"):
        Lots()(SCORES)


@pytest.mark.parametrize("power", [0.0, -1.0, math.inf, math.nan])
def test_a_wrong_power_is_refused(power):
    with pytest.raises(ValueError, match="power: found"):
        Lots(power)


def test_a_wrong_choice_is_refused():
    with pytest.raises(ValueError, match=r"choice: found Lots.*pass LimitingSoftmax"):
        Lots(1.0, Lots())


def test_in_order_gives_the_best_keys_in_the_order_of_keys():
    scores = torch.tensor([3.0, 9.0, 1.0, 5.0]).expand(2, 4)
    assert Ranked()(scores).argmax(dim=-1).tolist() == [1, 3]
    assert Ranked(in_order=True)(scores.flip(-1)).argmax(dim=-1).tolist() == [0, 2]
    with pytest.raises(ValueError, match="in_order: found True"):
        Ranked(1, in_order=True)


def test_first_of_equals_ignores_rounding():
    scores = torch.tensor([[-5.0, -4.0 - 1e-12, -4.0]], dtype=torch.float64)
    assert FirstOfEquals()(scores).tolist() == [[0.0, 1.0, 0.0]]
    assert FirstOfEquals(0.0)(scores).tolist() == [[0.0, 0.0, 1.0]]
    assert FirstOfEquals(0.5)(scores).tolist() == [[1.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="within: found 2"):
        FirstOfEquals(2.0)
