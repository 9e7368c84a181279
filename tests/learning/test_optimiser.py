"""Adam and the plateau rule against torch's own, run by run."""

import math

import pytest
import torch

from lloydformer.learning import Settings
from lloydformer.learning.optimiser import TrainingState, adam_step, update_learning_rate


def begun(rows=2, size=5):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, size, dtype=torch.float64, generator=generator)


def gradients(n):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 2, 5, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_adam_is_torchs_for_each_run(clip):
    state = TrainingState.begin(begun(), 0.01)
    state.rate[1] = 0.003
    theirs = [torch.nn.Parameter(row.clone()) for row in begun()]
    adams = [torch.optim.Adam([p], lr=lr) for p, lr in zip(theirs, (0.01, 0.003), strict=True)]
    for both in gradients(30):
        adam_step(state, both, clip)
        for parameter, adam, gradient in zip(theirs, adams, both, strict=True):
            parameter.grad = gradient.clone()
            if clip:
                torch.nn.utils.clip_grad_norm_([parameter], clip)
            adam.step()
    wanted = torch.stack([p.data for p in theirs])
    torch.testing.assert_close(state.weights, wanted, rtol=1e-6, atol=1e-9)


def test_the_rate_is_halved_after_five_evaluations_without_improvement():
    state, settings = TrainingState.begin(begun(1), 0.01), Settings()
    rates = []
    for value in (1.0, 0.9, *[0.9] * 5, 0.95, 0.8, 0.79):
        update_learning_rate(state, torch.tensor([value], dtype=torch.float64), settings)
        rates.append(state.rate.item())
    assert rates == pytest.approx([0.01] * 6 + [0.005] * 4)


def test_the_plateau_rule_is_torchs():
    """torch's patience is one less than ours: it acts on the evaluation after."""
    state, settings = TrainingState.begin(begun(1), 0.01), Settings(patience=4)
    optimiser = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.01)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=3)
    values = torch.rand(80, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for value in values:
        theirs.step(value.item())
        update_learning_rate(state, value.reshape(1), settings)
        assert state.rate.item() == pytest.approx(optimiser.param_groups[0]["lr"])


def test_each_run_has_its_own_patience():
    state, settings = TrainingState.begin(begun(2), 0.01), Settings(patience=2)
    for step in range(3):
        update_learning_rate(
            state, torch.tensor([1.0, 1.0 - 0.1 * step], dtype=torch.float64), settings
        )
    assert state.rate.tolist() == pytest.approx([0.005, 0.01])


def test_cosine_and_constant():
    for schedule, wanted in (("cosine", 0.005), ("constant", 0.01)):
        state = TrainingState.begin(begun(1), 0.01)
        state.step += 50
        settings = Settings(n_steps=100, schedule=schedule)
        update_learning_rate(state, torch.ones(1, dtype=torch.float64), settings)
        assert math.isclose(state.rate.item(), wanted, rel_tol=1e-9)
