"""Sinkhorn attention, its limit, and the recipe that uses them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import lloydformer as lf
from lloydformer import algorithms
from lloydformer.circuits.activations import LimitingSinkhorn, Sinkhorn, Softmax
from lloydformer.circuits.activations.contract import Reach
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES
from lloydformer.plans.constrained import ConstrainedPlan, SinkhornPlan
from lloydformer.plans.contract import apply_update
from lloydformer.plans.lower import LoweringError, derive, lower

BOUNDS = {
    "upper": (None, 0.3),
    "lower": (12, None),
    "balanced": (0.25, 0.25),
    "each": ([5, 0.3, 2, 0], [0.5, 30, 12, 0.4]),
    "none": (None, None),
}


def problem(rng, n=60, d=2, k=4):
    points = rng.normal(size=(n, d)) + 3 * rng.integers(0, 2, size=(n, 1))
    return torch.from_numpy(points), torch.from_numpy(points[:k].copy())


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("gamma", [None, 0.7])
def test_circuit_equals_algorithm_and_plan(bounds, gamma, rng, engine):
    points, centers = problem(rng)
    recipe = lf.recipes.constrained(*bounds, inverse_temperature=gamma, n_rounds=25)
    trace = lf.Circuit(recipe, n_features=2, n_clusters=4)(points, centers, n_layers=4)
    oracle = algorithms.Constrained(*bounds, inverse_temperature=gamma, n_rounds=25)
    history = algorithms.run(oracle, points.numpy(), centers.numpy(), 4)
    np.testing.assert_allclose(trace.centers.numpy(), history.centers, atol=1e-8)
    np.testing.assert_allclose(trace.assignments.numpy(), history.assignments, atol=1e-8)
    with ENGINES[engine]().open(TensorBlocks(points, leaf=10)) as session:
        origin = session.layout.origin
        for layer in range(4):
            start = trace.centers[layer]
            step = lower(recipe).step(session, start - origin, layer)
            new = apply_update(step.update, start - origin) + origin
            np.testing.assert_allclose(new.numpy(), trace.centers[layer + 1].numpy(), atol=1e-9)


def test_the_limit_of_large_inverse_temperatures_is_the_transport_problem(rng):
    points, centers = problem(rng)
    scores = -torch.cdist(points, centers).square()
    limit = LimitingSinkhorn((0.25,), (0.25,))(scores)
    away = [
        (Sinkhorn(gamma, (0.25,), (0.25,), n_rounds=3000)(scores) - limit).abs().sum().item()
        for gamma in (0.3, 1.0, 10.0)
    ]
    assert away[0] > away[1] > away[2]
    assert away[2] < 0.2


def test_columns_come_within_their_bounds_and_rows_sum_to_one(rng):
    scores = torch.from_numpy(rng.normal(size=(2, 50, 5)))  # a batch of two problems
    shares = Sinkhorn(3.0, (4, 0.1, 0, 0, 0), (12, 20, 15, 15, 11), n_rounds=500)(scores)
    torch.testing.assert_close(shares.sum(dim=-1), torch.ones(2, 50, dtype=torch.float64))
    sums = shares.sum(dim=-2)
    low, high = torch.tensor([4, 5, 0, 0, 0.0]), torch.tensor([12, 20, 15, 15, 11.0])
    assert (sums >= low - 1e-6).all()
    assert (sums <= high + 1e-6).all()
    for one, both in zip(scores, LimitingSinkhorn((5,), (20,))(scores), strict=True):
        torch.testing.assert_close(LimitingSinkhorn((5,), (20,))(one), both)


def test_without_bounds_they_are_softmax_and_argmax(rng):
    scores = torch.from_numpy(rng.normal(size=(20, 3)))
    torch.testing.assert_close(Sinkhorn(2.0)(scores), Softmax(2.0)(scores))
    assert torch.equal(LimitingSinkhorn()(scores).argmax(dim=1), scores.argmax(dim=1))


def test_sinkhorn_has_a_gradient(rng):
    scores = torch.from_numpy(rng.normal(size=(6, 3))).requires_grad_()
    assert gradcheck(lambda s: Sinkhorn(1.5, (2,), (2,), n_rounds=20)(s), (scores,))


def test_lowering_gives_its_reasons():
    found = derive(lf.recipes.constrained(2, 0.5))
    assert found.plan == ConstrainedPlan((2,), (0.5,))
    assert any("a transport problem" in step for step in found.steps)
    found = derive(lf.recipes.constrained(2, 0.5, 1.5, n_rounds=7))
    assert found.plan == SinkhornPlan(1.5, (2,), (0.5,), 7)
    assert any("each round is a fold" in step for step in found.steps)
    trimmed = lf.recipes.trimmed()
    bounded = lf.recipes.constrained(2, 5).encoder_cross
    with pytest.raises(LoweringError, match="together with bounds on sizes"):
        lower(replace(trimmed, encoder_cross=bounded))


def test_bounds_in_a_decoder_cannot_keep_clusters_apart():
    for activation in (LimitingSinkhorn((1,)), Sinkhorn()):
        with pytest.raises(ValueError, match="bounds on sizes hold for all queries together"):
            activation.lowering(Reach(1.0, 2.0), 1e-16)


@pytest.mark.parametrize("wrong", [{"size_min": 1.5}, {"size_max": -1}, {"size_max": "many"}])
def test_wrong_bounds_are_refused(wrong):
    with pytest.raises(ValueError, match="pass a whole number of rows"):
        lf.recipes.constrained(**wrong)


def test_soft_clusters_of_bounded_sizes(rng):
    """On data of any size as folds; the free energy falls."""
    points, centers = problem(rng)
    recipe = lf.recipes.constrained(0.25, 0.25, inverse_temperature=1.0, n_rounds=40)
    model = lf.CircuitClusterer(4, recipe=recipe, init=centers, tol=0, max_iter=4).fit(points)
    assert model.lowered_
    assert model.objective_history_[-1] < model.objective_history_[0]
