"""Ranked attention, and keys drawn from non-negative scores."""

import math

import pytest
import torch

from lloydformer.circuits.activations import Context, FirstOfEquals, LimitingSoftmax, Lots, Ranked

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
