"""Training gives the same numbers from the same seed, and each run only those of its heads."""

import pytest
import torch

from lloydformer.learning.symmetric.beginning import begin, first_heads, present
from lloydformer.learning.symmetric.layer import SymmetricLayer
from lloydformer.learning.symmetric.numbers import INVARIANTS, Numbers
from lloydformer.learning.symmetric.program import losses
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.training import train_symmetric
from lloydformer.learning.symmetric.varied import Varied

SMALL = SymmetricSettings(
    n_updates=8, warm_up=2, evaluate_every=3, shapes=(Shape(16, 40, 3, 2, 9), Shape(16, 30, 2, 3))
)


def trained(*runs):
    return train_symmetric(SMALL, runs, device="cpu")


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = trained(SymmetricRun(0)), trained(SymmetricRun(0)), SymmetricRun(1)
    assert torch.equal(first.weights, again.weights)
    assert not torch.equal(first.weights, trained(other).weights)
    assert [update for update, _ in first.history] == [3, 6, 8]


def test_a_run_comes_to_the_same_alone_and_beside_one_with_more_heads():
    small, large = SymmetricRun(0, n_heads=2), SymmetricRun(1, n_heads=3)
    both = trained(small, large)
    alone = first_heads(both.weights[0], both.numbers, 2)
    # the first noise is drawn for all heads of the stack, so begin from what this run began with
    begun = first_heads(begin(both.numbers, small), both.numbers, 2)
    assert alone.shape == begun.shape == (Numbers(2, 2).count * len(INVARIANTS),)
    assert not torch.equal(alone, begun)
    assert (both.weights[0][present(both.numbers, 2) == 0] == 0).all()
    problems = Varied(8).draw(torch.tensor([5]), torch.tensor(0), (16, 40, 3))
    wide = losses(SymmetricLayer(both.numbers), both.weights[:1], problems, 3)
    narrow = losses(SymmetricLayer(Numbers(2, 2)), alone[None], problems, 3)
    torch.testing.assert_close(wide, narrow, rtol=1e-4, atol=1e-4)


def test_an_invariant_that_a_run_does_not_know_has_no_weights():
    found = trained(SymmetricRun(0, without="gap"))
    theta = found.weights.view(found.numbers.count, len(INVARIANTS))
    assert (theta[:, INVARIANTS.index("gap")] == 0).all()
    assert (theta[:, INVARIANTS.index("margin")] != 0).any()


def test_the_rate_rises_and_falls_to_zero():
    rates = [SMALL.rate(update) for update in (*range(8), 8)]
    assert rates[0] < rates[1] > rates[2] > rates[7] > rates[8] == pytest.approx(0)


def test_settings_are_what_was_written():
    assert SymmetricSettings.read(SMALL.written()) == SMALL


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"n_heads": 0}, {"learning_rate": 0.0},
                                   {"without": "luck"}], ids=str)  # fmt: skip
def test_a_run_says_what_is_wrong(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SymmetricRun(**wrong)
