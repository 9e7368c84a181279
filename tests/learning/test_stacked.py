"""The stacked layer is the circuit: same centers, same gradients, for every run of a stack."""

import pytest
import torch
from torch.autograd import gradcheck

import lloydformer as lf
from lloydformer.circuits.activations import NOTHING, Softmax
from lloydformer.learning.attention import Attended, Dropped
from lloydformer.learning.stacked import Drops, StackedLayer
from lloydformer.learning.stacked import _in_parts as in_parts
from lloydformer.learning.tasks import Tasks

SEEDS = [3, 5]
RECIPES = [
    lf.recipes.learned(codes, bias, scaled, activation)
    for codes in ("onehot", "binary", None)
    for bias, scaled in ((True, True), (False, False))
    for activation in ("softmax", "sparsemax")
]


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


def test_without_a_gradient_rows_are_taken_in_parts(monkeypatch):
    layer = StackedLayer(lf.recipes.learned(), 4, 3)
    points, centers = problem()
    weights = layer.begin(SEEDS).double()
    whole = layer(weights, points, centers)
    monkeypatch.setattr("lloydformer.learning.stacked._CELLS", 2 * 2 * 20 * 3)
    with torch.no_grad():
        torch.testing.assert_close(layer(weights, points, centers), whole)


def test_parts_never_hold_more_scores_than_allowed(monkeypatch):
    seen = []
    monkeypatch.setattr("lloydformer.learning.stacked._CELLS", 100)

    class Watched(Softmax):
        def __call__(self, scores, context=NOTHING):
            seen.append(scores.numel())
            return super().__call__(scores, context)

    in_parts(Watched(), torch.ones(2, 30, 3), torch.ones(2, 10, 3), torch.ones(2, 10, 3))
    assert max(seen) <= 100
    assert sum(seen) == 2 * 30 * 10


def small(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


PLACES = torch.tensor([0, 7, 11, 24, 24])  # 24 is past the end


@pytest.mark.parametrize("places", [None, PLACES])
def test_attention_has_the_gradient_it_says(places):
    parts = [p.requires_grad_() for p in (small(2, 3, 2), small(2, 4, 2) * 2, small(2, 4, 3))]
    assert gradcheck(lambda *qkv: Attended.apply(*qkv, places), parts)


def test_dropped_places_are_exactly_those():
    queries, keys, values = small(2, 3, 2), small(2, 4, 2), small(2, 4, 3)
    weights = (queries @ keys.mT).softmax(dim=-1)
    kept = weights.clone()
    kept.view(-1)[PLACES[:3]] = 0
    torch.testing.assert_close(Attended.apply(queries, keys, values, PLACES), kept @ values)
    assert torch.equal(Dropped.apply(weights, PLACES), kept)


def test_dropped_has_the_gradient_it_says():
    assert gradcheck(lambda w: Dropped.apply(w, PLACES), [small(2, 3, 4).requires_grad_()])


def test_dropping_keeps_the_mean():
    """Over many steps the centers average to those without dropping, nearly: heads are few."""
    recipe = lf.recipes.learned(dropout=0.05)
    layer = StackedLayer(recipe, 4, 3)
    points, centers = problem()
    weights = layer.begin(SEEDS).double().requires_grad_()
    drops = [Drops(torch.tensor(SEEDS), torch.tensor(t), 0.05) for t in range(400)]
    mean = torch.stack([layer(weights, points, centers, d).detach() for d in drops]).mean(dim=0)
    assert not torch.equal(layer(weights, points, centers, drops[0]), mean)
    assert relative(mean, layer(weights, points, centers)) < 0.02


def test_slots_and_depths_drop_different_places():
    drops = Drops(torch.tensor([1]), torch.tensor(0), 0.3)
    shapes = {"encoder_cross": (1, 2, 5, 5), "encoder_self": (1, 2, 5, 5)}
    first, second = drops.places(shapes, 0), drops.places(shapes, 1)
    assert not torch.equal(first["encoder_cross"], first["encoder_self"])
    assert not torch.equal(first["encoder_cross"], second["encoder_cross"])


def test_a_constructed_recipe_is_no_stack():
    with pytest.raises(ValueError, match="'lloyd'; stacks are of lf"):
        StackedLayer(lf.recipes.lloyd(), 2, 2)
