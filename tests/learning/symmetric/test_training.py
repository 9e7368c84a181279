"""Training is a function of the seed, and a run has weights only for its own heads."""

import json
from dataclasses import asdict

import pytest
import torch

from lloydformer.learning.symmetric.layer import INVARIANTS, NumberLayout, SymmetricLayer
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.training import (
    head_mask,
    initial_weights,
    losses,
    to_frame,
    train_symmetric,
    weights_of_heads,
)
from lloydformer.learning.symmetric.varied_tasks import draw_varied_tasks

SMALL = SymmetricSettings(
    n_updates=8, warm_up=2, evaluate_every=3, shapes=(Shape(16, 40, 3, 2, 9), Shape(16, 30, 2, 3))
)


def trained(*runs):
    return train_symmetric(SMALL, runs, device="cpu")


def test_the_seed_decides_the_weights():
    first, again, other = trained(SymmetricRun(0)), trained(SymmetricRun(0)), SymmetricRun(1)
    assert torch.equal(first.weights, again.weights)
    assert not torch.equal(first.weights, trained(other).weights)
    assert [update for update, _ in first.history] == [3, 6, 8]


def test_a_run_has_only_its_own_heads_in_a_larger_stack():
    small, large = SymmetricRun(0, n_heads=2), SymmetricRun(1, n_heads=3)
    both = trained(small, large)
    alone = weights_of_heads(both.weights[0], both.numbers, 2)
    # initial noise is drawn for all heads of the stack: compare with what this run started from
    begun = weights_of_heads(initial_weights(both.numbers, small), both.numbers, 2)
    assert alone.shape == begun.shape == (NumberLayout(2, 2).count * len(INVARIANTS),)
    assert not torch.equal(alone, begun)
    assert (both.weights[0][head_mask(both.numbers, 2) == 0] == 0).all()
    problems = to_frame(draw_varied_tasks(torch.tensor([5]), torch.tensor(0), (16, 40, 3), 8))
    wide = losses(SymmetricLayer(both.numbers), both.weights[:1], problems, 3)
    narrow = losses(SymmetricLayer(NumberLayout(2, 2)), alone[None], problems, 3)
    torch.testing.assert_close(wide, narrow, rtol=1e-4, atol=1e-4)


def test_an_invariant_left_out_has_no_weights():
    found = trained(SymmetricRun(0, without="gap"))
    theta = found.weights.view(found.numbers.count, len(INVARIANTS))
    assert (theta[:, INVARIANTS.index("gap")] == 0).all()
    assert (theta[:, INVARIANTS.index("margin")] != 0).any()


def test_the_rate_rises_and_falls_to_zero():
    rates = [SMALL.rate(update) for update in (*range(8), 8)]
    assert rates[0] < rates[1] > rates[2] > rates[7] > rates[8] == pytest.approx(0)


def test_settings_survive_serialisation():
    assert SymmetricSettings.read(json.loads(json.dumps(asdict(SMALL)))) == SMALL


@pytest.mark.parametrize(
    ("name", "wrong"), [("seed", -1), ("n_heads", 0), ("learning_rate", 0.0), ("without", "luck")]
)
def test_bad_runs_are_refused(name, wrong):
    with pytest.raises(ValueError, match=name):
        SymmetricRun(**{name: wrong})
