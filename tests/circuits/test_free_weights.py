"""Free weights in the same circuit: parameters, gradients, dropout, no lowering."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import lloydformer as lf
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.scores import Euclidean, Scaled
from lloydformer.plans.lower import LoweringError, lower


@pytest.fixture
def problem(rng):
    points = torch.tensor(rng.uniform(size=(7, 2)))
    return points, points[:3].clone()


def learned(recipe=None, **settings):
    recipe = recipe or lf.recipes.learned(**settings)
    return lf.Circuit(recipe, n_features=2, n_clusters=3, trainable=True).double()


@pytest.mark.parametrize(("codes", "dim"), [("onehot", 5), ("binary", 4), (None, 2)])
def test_codes_set_the_dimensions(codes, dim):
    circuit = learned(codes=codes)
    shapes = {tuple(p.shape) for p in circuit.parameters()}
    assert shapes == {(dim, dim), (dim,)}
    assert len(list(circuit.parameters())) == 4 * 3 * 2
    assert list(circuit.buffers()) == []


def test_without_bias_there_are_only_matrices():
    assert {p.ndim for p in learned(bias=False).parameters()} == {2}


def test_the_seed_determines_the_weights():
    def weights(seed):
        circuit = lf.Circuit(lf.recipes.learned(), 2, 3, trainable=True, seed=seed)
        return torch.cat([p.flatten() for p in circuit.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert weights(1).abs().max() <= 5**-0.5


@pytest.mark.parametrize("codes", ["onehot", "binary", None])
@pytest.mark.parametrize("activation", ["softmax", "sparsemax"])
def test_gradients_of_the_weights(problem, codes, activation):
    circuit = learned(codes=codes, activation=activation).eval()
    names = [name for name, _ in circuit.named_parameters()]

    def last(*weights):
        trace = functional_call(circuit, dict(zip(names, weights, strict=True)), (*problem, 2))
        return trace.centers[-1]

    inputs = tuple(p.detach().clone().requires_grad_() for p in circuit.parameters())
    assert gradcheck(last, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["lloyd", "soft", "soft_dot", "robust_lifted"])
def test_a_constructed_circuit_can_be_trained_from_its_weights(problem, name):
    recipe = getattr(lf.recipes, name)()
    fixed = lf.Circuit(recipe, n_features=2, n_clusters=3)
    with pytest.warns(NoGradientWarning):
        free = lf.Circuit(recipe, n_features=2, n_clusters=3, trainable=True).double()
    assert [n for n, _ in free.named_parameters()] == [n for n, _ in fixed.named_buffers()]
    moved = free(*problem, 2).centers
    torch.testing.assert_close(moved, fixed(*problem, 2).centers)
    moved[-1].sum().backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in free.parameters())


def test_tokens_are_embedded_again_before_each_step(problem):
    circuit = learned().eval()
    points, centers = problem
    twice = circuit(points, centers, 2).centers[-1]
    once = circuit(points, centers, 1).centers[-1]
    torch.testing.assert_close(circuit(points, once, 1).centers[-1], twice)
    kept = learned(replace(lf.recipes.learned(), embeds_again=False)).eval()
    assert not torch.allclose(kept(points, centers, 2).centers[-1], twice)


def test_dropout_acts_in_training_only(problem):
    circuit = learned(dropout=0.5)
    assert torch.equal(circuit.eval()(*problem, 1).centers, circuit(*problem, 1).centers)
    torch.manual_seed(0)
    assert not torch.equal(
        circuit.train()(*problem, 1).centers, circuit.eval()(*problem, 1).centers
    )


def test_a_scaled_score_is_divided_by_the_root_of_the_dimensions(rng):
    queries, keys = torch.tensor(rng.normal(size=(3, 9))), torch.tensor(rng.normal(size=(4, 9)))
    torch.testing.assert_close(Scaled(Euclidean())(queries, keys), Euclidean()(queries, keys) / 3)


def test_learned_weights_are_not_lowered():
    with pytest.raises(LoweringError, match=r"encoder_cross prevents lowering.*are learned"):
        lower(lf.recipes.learned())


def test_the_learned_recipe_is_not_centered():
    assert not lf.recipes.learned().translation_invariant


def test_its_equation_names_its_maps():
    assert str(lf.recipes.learned()).count("W+b, W+b, W+b") == 4
    assert "A₂[1](X, C" in lf.recipes.learned(bias=False).equation()


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"codes": "gray"}, "codes"), ({"activation": "top"}, "activation")],
    ids=str,
)
def test_wrong_parameters_are_refused(settings, words):
    with pytest.raises(Exception, match=words):
        lf.recipes.learned(**settings)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_wrong_dropout_is_refused(dropout):
    activation = lf.recipes.soft().encoder_cross.activation
    with pytest.raises(ValueError, match=f"dropout: found {dropout}; pass a fraction"):
        Head(Euclidean(), activation, Dense(), Dense(), Dense(), dropout=dropout)
