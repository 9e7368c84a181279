"""Gradients flow through every recipe with a finite temperature."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import gradcheck

import lloydformer as lf
from lloydformer.circuits.activations import Gumbel, Softmax, TopK


def changed(recipe, slot, activation):
    return replace(recipe, **{slot: replace(getattr(recipe, slot), activation=activation)})


SMOOTH = {
    "soft": lf.recipes.soft(0.8),
    "soft_dot": lf.recipes.soft_dot(0.8),
    "robust, softmax": lf.recipes.robust(0.5, "softmax"),
    "robust, sparsemax": lf.recipes.robust(0.2),
    "robust, top-k": lf.recipes.robust(0.5, TopK(2)),
    "robust_lifted, softmax": lf.recipes.robust_lifted(0.5, "softmax"),
    "robust_lifted, sparsemax": lf.recipes.robust_lifted(0.2),
    "medoids with a temperature": changed(lf.recipes.medoids(1.0), "decoder_cross", Gumbel(0.7)),
    "lloyd": lf.recipes.lloyd(),  # hard choices: constant labels, moving means
    "trimmed": lf.recipes.trimmed(0.7),
    "lloyd with soft assignments": changed(lf.recipes.lloyd(), "encoder_cross", Softmax(0.8)),
}


@pytest.fixture
def problem(rng):
    points = torch.tensor(rng.normal(size=(6, 2)), requires_grad=True)
    centers = torch.tensor(rng.normal(size=(2, 2)), requires_grad=True)
    return points, centers


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_the_centers(name, problem):
    circuit = lf.Circuit(SMOOTH[name], n_features=2, n_clusters=2)
    assert gradcheck(lambda x, c: circuit(x, c, n_layers=2, seed=1).centers[-1], problem)


def test_gradients_of_the_objective(problem):
    circuit = lf.Circuit(lf.recipes.soft(0.8), n_features=2, n_clusters=2)
    assert gradcheck(lambda x, c: circuit(x, c, n_layers=2).objective, problem)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_gradients_through_a_norm(norm, rng):
    """Perturbed rows are not unit vectors, so they are normalised first."""
    raw = torch.tensor(rng.normal(size=(6, 3)), requires_grad=True)
    circuit = lf.Circuit(lf.recipes.spherical(norm), n_features=3, n_clusters=2)

    def run(rows):
        rows = rows - rows.mean(dim=-1, keepdim=True)
        unit = rows / rows.norm(dim=-1, keepdim=True)
        return circuit(unit, unit[:2], n_layers=2).centers[-1]

    assert gradcheck(run, raw)


def test_a_constant_column_has_gradients_too(problem):
    points = torch.cat([problem[0].detach(), torch.ones(6, 1)], dim=1).requires_grad_()
    circuit = lf.Circuit(lf.recipes.soft(0.8), n_features=3, n_clusters=2)
    assert gradcheck(lambda x: circuit(x, x[:2], n_layers=2).centers[-1], points)


def test_gradients_of_points_and_centers_are_not_zero(problem):
    circuit = lf.Circuit(lf.recipes.soft(0.8), n_features=2, n_clusters=2)
    total = circuit(*problem, n_layers=2).objective[-1]
    for gradient in torch.autograd.grad(total, problem):
        assert gradient.abs().min() > 0
