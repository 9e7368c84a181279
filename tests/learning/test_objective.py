"""The smoothed objective against plain loops, its limits and its gradient."""

import math

import pytest
import torch
from entmax import sparsemax
from torch.autograd import gradcheck

from lloydformer.learning.objective import relative_objective, smoothed_objective
from lloydformer.numerics.clusters import kmeans_objective


@pytest.fixture
def problem(rng):
    return torch.tensor(rng.uniform(size=(9, 3))), torch.tensor(rng.uniform(size=(4, 3)))


def by_loops(points, centers, temperature):
    total = 0.0
    for x in points.tolist():
        squares = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in centers.tolist()]
        weights = [math.exp(-s / temperature) for s in squares]
        total += sum(w * s for w, s in zip(weights, squares, strict=True)) / sum(weights)
    return total


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
def test_softmax_is_the_papers_double_sum(problem, temperature):
    found = smoothed_objective(*problem, temperature)
    assert math.isclose(found, by_loops(*problem, temperature), rel_tol=1e-12)


def test_sparsemax_agrees_with_entmax(problem):
    points, centers = problem
    squares = (points[:, None] - centers).square().sum(dim=-1)
    wanted = (sparsemax(-squares / 0.1, dim=-1) * squares).sum()
    torch.testing.assert_close(smoothed_objective(*problem, 0.1, "sparsemax"), wanted)


def test_smoothing_bounds_the_exact_objective_and_tends_to_it(problem):
    exact = smoothed_objective(*problem, smoothing="exact")
    torch.testing.assert_close(exact, kmeans_objective(*problem))
    for smoothing in ("softmax", "sparsemax"):
        wide, narrow, limit = (smoothed_objective(*problem, t, smoothing) for t in (1.0, 0.1, 1e-4))
        assert wide > narrow > exact
        torch.testing.assert_close(limit, exact)
    tight = smoothed_objective(*problem, 0.1, "sparsemax")
    assert tight < smoothed_objective(*problem, 0.1, "softmax")


@pytest.mark.parametrize("smoothing", ["softmax", "sparsemax", "exact"])
def test_gradients(problem, smoothing):
    points, centers = problem
    centers.requires_grad_()
    assert gradcheck(lambda c: smoothed_objective(points, c, 0.1, smoothing), (centers,))


def test_a_temperature_for_each_problem(problem):
    points, centers = (torch.stack([part, part]) for part in problem)
    both = smoothed_objective(points, centers, torch.tensor([0.1, 0.7])[:, None, None])
    assert math.isclose(both[1], smoothed_objective(*problem, 0.7), rel_tol=1e-6)


def test_relative_objective(problem):
    exact = smoothed_objective(*problem, smoothing="exact")
    assert relative_objective(*problem, 2 * exact).item() == 0.5


def test_an_unknown_smoothing_is_refused(problem):
    with pytest.raises(ValueError, match="smoothing: found 'hard'; pass one of softmax"):
        smoothed_objective(*problem, smoothing="hard")
