"""Training of any recipe with free weights: scores, norm, network, dropout and noise."""

from dataclasses import replace

import pytest
import torch
from stopped_training import train_until

import lloydformer as lf
from lloydformer.circuits.activations import Gumbel
from lloydformer.circuits.feedforward import Perceptron
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.learning import Run, Settings, Tasks, load_pretrained, train
from lloydformer.learning.export import compare_runs, export_runs
from lloydformer.learning.stacked_layer import CircuitLayer, StackedLayer
from lloydformer.learning.trainer import Trainer

LEARNED = lf.recipes.learned(dropout=0.0)
TEXT = lf.recipes.learned(decoder="dot", bias=False)
DRAWING = replace(LEARNED.decoder_cross, activation=Gumbel(0.5))
RECIPES = {
    "the text's": TEXT,
    "norm": replace(LEARNED, name="normed", norm=RMSNorm()),
    "encoder": replace(LEARNED, name="encoder", encoder_norm=LayerNorm(1e-5)),
    "network": replace(LEARNED, name="network", feedforward=Perceptron(8)),
    "networks": replace(TEXT, feedforward=Perceptron(8), encoder_feedforward=Perceptron(8)),
    "noise": replace(LEARNED, name="noise", decoder_cross=DRAWING),
    "one dot": replace(LEARNED, name="one_dot", decoder_self=TEXT.decoder_self),
    "lloyd's identity": replace(LEARNED, encoder_self=lf.recipes.lloyd().encoder_self),
}
SETTINGS = Settings(
    Tasks(2, 3, 20), n_steps=6, batch_size=4, evaluate_every=3, n_validation=6, start="random"
)
RUNS = [Run(0), Run(1, 0.3, "gumbel")]


def test_the_text_has_dot_products_in_the_decoder_and_no_bias():
    assert [head.score.symbol for head in TEXT.heads.values()] == ["ℓ2/√", "ℓ2/√", "⟨,⟩/√", "⟨,⟩/√"]
    circuit = lf.Circuit(TEXT, 32, 10, trainable=True)
    assert sum(weight.numel() for weight in circuit.parameters()) == 12 * 42**2


def test_learned_layers_are_stacked_and_others_are_circuits():
    kinds = {name: type(SETTINGS.with_recipe(r).layer) for name, r in RECIPES.items()}
    assert kinds.pop("the text's") is StackedLayer
    assert set(kinds.values()) == {CircuitLayer}
    settings = SETTINGS.with_recipe(TEXT)
    assert (settings.decoder, settings.bias, settings.base) == ("dot", False, None)
    assert Settings.read(settings.written()) == settings


@pytest.mark.filterwarnings("ignore::lloydformer.circuits.gradients.NoGradientWarning")
@pytest.mark.parametrize("name", RECIPES)
def test_training_changes_every_weight_that_has_a_gradient(name):
    trained = train(SETTINGS, RUNS, recipe=RECIPES[name], device="cpu")
    assert torch.isfinite(trained.weights).all()
    begun = trained.settings.layer.begin([0, 1])
    moved = trained.settings.layer.named(trained.weights - begun)
    still = {weight for weight, change in moved.items() if not change.any()}
    if name == "lloyd's identity":  # a selection has no gradient
        assert still == {"layers.0.encoder_self.query", "layers.0.encoder_self.key"}
    else:
        # the first position of a sum that soft-max takes does not matter: biases of keys
        assert not {weight for weight in still if "bias" not in weight}
    circuit = trained.circuit()
    assert circuit.schedule[0] == RECIPES[name]


@pytest.mark.parametrize("name", ["the text's", "noise", "networks"])
def test_resume_together_and_alone_give_the_same_weights(name, tmp_path):
    settings = replace(SETTINGS.with_recipe(RECIPES[name]), n_steps=12)
    whole = train(settings, RUNS, device="cpu")
    train_until(6, settings, RUNS, tmp_path, checkpoint_every=1)
    again = train(settings, RUNS, device="cpu", folder=tmp_path, resume=True)
    assert torch.equal(again.weights, whole.weights)
    alone = train(settings, RUNS[1:], device="cpu")
    torch.testing.assert_close(alone.weights[0], whole.weights[1], rtol=1e-3, atol=1e-4)


def test_dropout_of_a_circuit_belongs_to_seed_and_step_and_is_off_in_evaluation():
    settings = SETTINGS.with_recipe(replace(RECIPES["networks"], name="dropped"))
    trainer = Trainer(settings, [Run(0), Run(1)], "cpu")
    assert trainer.layer.draws
    batch = trainer.draw(trainer.seeds, trainer.state.step, 3)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    trainer.run_step()
    assert torch.equal(torch.rand(3), expected), "the global generator is left as it was"
    first = trainer.layer(trainer.state.weights, *batch)
    assert torch.equal(first, trainer.layer(trainer.state.weights, *batch))


def test_noise_differs_between_steps_of_an_evaluation():
    layer = SETTINGS.with_recipe(RECIPES["noise"]).layer
    weights, points = layer.begin([0]), torch.rand(1, 2, 20, 2)
    first, again, other = (
        layer(weights, points, points[:, :, :3], None, depth) for depth in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_network_begins_as_none():
    plain = lf.Circuit(LEARNED, 2, 3, trainable=True)
    network = lf.Circuit(RECIPES["network"], 2, 3, trainable=True)
    points = torch.rand(20, 2)
    found, expected = (c.eval()(points, points[:3], 2).centers for c in (network, plain))
    torch.testing.assert_close(found, expected)
    with pytest.raises(ValueError, match="hidden: found 0; pass an integer above 0"):
        Perceptron(0)


def test_the_constructed_start_of_the_text_is_nearly_a_lloyd_step():
    settings = replace(SETTINGS.with_recipe(TEXT, "constructed"), n_validation=40)
    trained = train(replace(settings, n_steps=1, evaluate_every=1), device="cpu")
    assert 0.8 < trained.history[0].relative[0] < 1.1


def test_trained_recipes_are_saved_with_their_parts(tmp_path):
    trained = train(SETTINGS, recipe=RECIPES["networks"], device="cpu")
    (card,) = export_runs(tmp_path, trained, compare_runs(trained, n_tasks=4, n_steps=2))
    found = load_pretrained(card)
    assert found.settings == trained.settings
    assert torch.equal(found.weights, trained.weights)


def test_there_is_no_construction_of_other_free_weights():
    with pytest.raises(ValueError, match="start: found 'constructed' for the recipe 'noise'"):
        train(SETTINGS, recipe=RECIPES["noise"], start="constructed")
