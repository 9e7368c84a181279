"""The stacked layer equals the circuit: same centers and gradients for every run."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import gradcheck

import lloydformer as lf
from lloydformer.circuits.activations import NOTHING, Softmax
from lloydformer.learning.random_numbers import Dropout
from lloydformer.learning.stacked_layer import (
    DropoutAttention,
    StackedHeads,
    StackedLayer,
    drop_weights,
)
from lloydformer.learning.tasks import Tasks

SEEDS = [3, 5]
RECIPES = [
    lf.recipes.learned(codes, bias, scaled, activation)
    for codes in ("onehot", "binary", None)
    for bias, scaled in ((True, True), (False, False))
    for activation in ("softmax", "sparsemax")
]
RECIPES += [lf.recipes.learned(scaled=s, bias=s, decoder="dot") for s in (True, False)]


def problem(dtype=torch.float64):
    batch = Tasks(4, 3, 20).draw(("normal", "cauchy"), torch.tensor([1, 2]), torch.tensor(0), 2)
    return [part.to(dtype) for part in batch]


def relative(found, wanted):
    return ((found - wanted).norm() / wanted.norm()).item()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: f"{r.tokens.codes}, {r.encoder_self}")
def test_forward_and_gradients_are_the_circuits(recipe):
    layer = StackedLayer(recipe, 4, 3)
    points, centers = problem()
    weights = layer.begin(SEEDS).double().requires_grad_()
    moved = layer(weights, points, layer(weights, points, centers))
    moved.square().sum().backward()
    for run, seed in enumerate(SEEDS):
        circuit = layer.circuit(seed).double().eval()
        last = circuit(points[run], centers[run], n_layers=2).centers[:, -1]
        last.square().sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in circuit.parameters()])
        assert relative(moved[run], last) < 1e-10
        assert relative(weights.grad[run], gradient) < 1e-10


def test_without_gradients_queries_are_processed_in_chunks(monkeypatch):
    layer = StackedLayer(lf.recipes.learned(), 4, 3)
    points, centers = problem()
    weights = layer.begin(SEEDS).double()
    whole = layer(weights, points, centers)
    monkeypatch.setattr("lloydformer.learning.stacked_layer._CELLS", 2 * 2 * 20 * 3)
    with torch.no_grad():
        torch.testing.assert_close(layer(weights, points, centers), whole)


def test_chunks_never_hold_more_scores_than_allowed(monkeypatch):
    seen = []
    monkeypatch.setattr("lloydformer.learning.stacked_layer._CELLS", 100)

    class Watched(Softmax):
        def __call__(self, scores, context=NOTHING):
            seen.append(scores.numel())
            return super().__call__(scores, context)

    recipe = lf.recipes.learned()
    watched = replace(recipe, encoder_self=replace(recipe.encoder_self, activation=Watched()))
    heads = StackedHeads(watched, {}, None)
    tokens = torch.ones(1, 2, 30, 3), torch.ones(1, 2, 10, 3), torch.ones(1, 2, 10, 3)
    with torch.no_grad():
        heads("encoder_self", *tokens)
    assert max(seen) <= 100
    assert sum(seen) == 2 * 30 * 10


def small(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


INDICES = torch.tensor([0, 7, 11, 24, 24])  # 24 is past the end


@pytest.mark.parametrize("indices", [None, INDICES])
def test_gradients_of_attention(indices):
    parts = [p.requires_grad_() for p in (small(2, 3, 2), small(2, 4, 2) * 2, small(2, 4, 3))]
    assert gradcheck(lambda *qkv: DropoutAttention.apply(*qkv, indices), parts)


def test_exactly_the_given_weights_are_dropped():
    queries, keys, values = small(2, 3, 2), small(2, 4, 2), small(2, 4, 3)
    weights = (queries @ keys.mT).softmax(dim=-1)
    kept = weights.clone()
    kept.view(-1)[INDICES[:3]] = 0
    torch.testing.assert_close(
        DropoutAttention.apply(queries, keys, values, INDICES), kept @ values
    )
    assert torch.equal(drop_weights(weights, INDICES), kept)


def test_gradients_of_dropped_weights():
    assert gradcheck(lambda w: drop_weights(w, INDICES), [small(2, 3, 4).requires_grad_()])


def test_dropout_keeps_the_mean():
    """Centers averaged over many steps are nearly those without dropout."""
    recipe = lf.recipes.learned(dropout=0.05)
    layer = StackedLayer(recipe, 4, 3)
    points, centers = problem()
    weights = layer.begin(SEEDS).double().requires_grad_()
    dropouts = [Dropout(torch.tensor(SEEDS), torch.tensor(t), 0.05) for t in range(400)]
    mean = torch.stack([layer(weights, points, centers, d).detach() for d in dropouts]).mean(dim=0)
    assert not torch.equal(layer(weights, points, centers, dropouts[0]), mean)
    assert relative(mean, layer(weights, points, centers)) < 0.02


def test_slots_and_depths_drop_different_weights():
    dropout = Dropout(torch.tensor([1]), torch.tensor(0), 0.3)
    n_weights = {"encoder_cross": 50, "encoder_self": 50}
    first, second = dropout.indices(n_weights, 0), dropout.indices(n_weights, 1)
    assert not torch.equal(first["encoder_cross"], first["encoder_self"])
    assert not torch.equal(first["encoder_cross"], second["encoder_cross"])


def test_a_constructed_recipe_is_refused():
    with pytest.raises(ValueError, match="'lloyd'; a stacked layer needs lf"):
        StackedLayer(lf.recipes.lloyd(), 2, 2)
