"""The statements on definitions fail for definitions that are wrong."""

import pytest
import torch
from scipy.special import logsumexp, softmax

import lloydformer as lf
from lloydformer.circuits.activations import Softmax
from lloydformer.verify import definitions
from lloydformer.verify.statements import generator


def holds(statement) -> bool:
    return statement(generator(statement, seed=3)).holds


def free_energy(squares, temperature):
    """The log-sum-exp smoothing: a lower bound."""
    return -temperature * logsumexp(-squares / temperature, axis=1).sum()


def far_weights(squares, temperature):
    """The sign of the exponent is wrong: far centers weigh most."""
    return (softmax(squares / temperature, axis=1) * squares).sum()


def mean_distance(squares, temperature):
    """Above the objective, but it does not tend to it."""
    return squares.mean(axis=1).sum()


def test_the_smoothed_objective_is_neither_below_nor_far_above(monkeypatch):
    assert holds(definitions.smoothed_bound)
    for wrong in (free_energy, far_weights, mean_distance):
        monkeypatch.setattr(definitions, "smoothed", wrong)
        assert not holds(definitions.smoothed_bound), wrong.__name__


def test_the_loss_of_training_is_the_smoothed_objective():
    points = torch.rand(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    squares = (points[:, None] - points[:6]).square().sum(dim=-1).numpy()
    loss = lf.learning.smoothed_objective(points, points[:6], temperature=0.1).item()
    assert loss == pytest.approx(definitions.smoothed(squares, 0.1), rel=1e-12)


def test_another_temperature_is_another_assignment(monkeypatch):
    assert holds(definitions.assignments)
    call = Softmax.__call__
    monkeypatch.setattr(Softmax, "__call__", lambda self, s, *more: call(self, 1.001 * s, *more))
    assert not holds(definitions.assignments)


@pytest.mark.long
def test_medoids_that_are_no_points_are_detected(monkeypatch):
    assert holds(definitions.medoids_are_points)
    run = definitions._run

    def moved(recipe, problem, n_layers, seed=None):
        trace = run(recipe, problem, n_layers, seed)
        trace.centers[-1, 0] += 1e-6 * problem.spread
        return trace

    monkeypatch.setattr(definitions, "_run", moved)
    assert not holds(definitions.medoids_are_points)


def test_an_objective_below_the_least_is_detected(monkeypatch):
    least = definitions._least
    monkeypatch.setattr(definitions, "_least", lambda problem: 1e3 * least(problem))
    assert not holds(definitions.medoids_are_points)
