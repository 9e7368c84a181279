"""Training from constructed weights: where it starts, what it improves, what it refuses."""

import json
from dataclasses import replace

import pytest
import torch
from stopped_training import train_until

import lloydformer as lf
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.learning import (
    LearnedKMeans,
    Run,
    Settings,
    Tasks,
    initial_weights,
    load_pretrained,
    train,
)
from lloydformer.learning.export import compare_runs, export_runs
from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.trainer import Trainer

LEARNED = [
    {"codes": codes, "activation": activation, "bias": bias, "scaled": bias}
    for codes in ("onehot", "binary")
    for activation in ("softmax", "sparsemax")
    for bias in (True, False)
]
THROUGH = lf.recipes.straight_through(lf.recipes.lloyd(), 30.0)
BASES = {
    "lloyd": THROUGH,
    "soft": lf.recipes.straight_through(lf.recipes.soft(30.0), 30.0),
    "dot": lf.recipes.straight_through(lf.recipes.lloyd_dot(), 30.0),
    "binary": lf.recipes.straight_through(lf.recipes.lloyd_binary(), 30.0),
    "trimmed": lf.recipes.straight_through(lf.recipes.trimmed(), 30.0),
    "robust": lf.recipes.straight_through(lf.recipes.robust(), 30.0),
    "symmetric": lf.recipes.symmetric(),
}


def measured(settings, family="normal"):
    """The objective relative to a Lloyd step, before the first step of training."""
    trainer = Trainer(settings, [Run(family=family)], "cpu")
    trainer.evaluate()
    return trainer.measured


@pytest.mark.parametrize("sizes", [(1, 3), (2, 3), (4, 6), (16, 25), (3, 1)], ids=str)
@pytest.mark.parametrize("options", LEARNED, ids=str)
def test_a_learned_layer_starts_near_a_lloyd_step(sizes, options):
    settings = Settings(Tasks(*sizes, 64), n_validation=40, start="constructed", **options)
    assert 0.85 < measured(settings).item() < 1.06
    assert measured(replace(settings, start="random")).item() > 1.3


@pytest.mark.parametrize("family", ["normal", "cauchy", "gumbel", "laplace", "lognormal"])
def test_it_does_so_in_every_family(family):
    settings = Settings(Tasks(4, 6, 64), n_validation=40, start="constructed")
    assert 0.9 < measured(settings, family).item() < 1.1


@pytest.mark.parametrize("options", LEARNED, ids=str)
def test_at_low_temperatures_it_is_lloyds_step(monkeypatch, options):
    """The construction, without what makes it easier to train."""
    monkeypatch.setattr(initial_weights, "ASSIGN", 1e9)
    monkeypatch.setattr(initial_weights, "APART", {"softmax": 100.0, "sparsemax": 100.0})
    layer = Settings(Tasks(3, 5, 40), **options).layer
    batch = Tasks(3, 5, 40).draw(("normal",), torch.tensor([1]), torch.tensor(0), 6)
    points, centers = batch.points.double(), batch.centers.double()
    moved = layer(initial_weights.construct_weights(layer)[None].double(), points, centers)
    expected = lloyd_step(points, centers, torch.tensor([0]), torch.tensor(0))
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-6)


@pytest.mark.long
def test_training_improves_on_the_construction_and_random_weights_are_far_behind():
    settings = Settings(
        Tasks(2, 3, 40), n_steps=200, batch_size=8, evaluate_every=100, n_validation=100
    )
    constructed, random = (
        train(settings, start=start, device="cpu").history for start in ("constructed", "random")
    )
    assert [e.step for e in constructed] == [0, 100, 200]
    assert [e.step for e in random] == [100, 200]
    first, last = (constructed[i].relative[0] for i in (0, -1))
    assert last < first < 1.0
    assert constructed[-1].loss[0] < constructed[0].loss[0]
    assert random[-1].relative[0] > 1.5


@pytest.mark.parametrize("name", BASES)
def test_a_constructed_recipe_starts_at_its_weights(name):
    """One run of the layer is one layer of the circuit."""
    settings = Settings(Tasks(2, 3, 20)).with_recipe(BASES[name], "constructed")
    trainer = Trainer(settings, [Run(0), Run(1)], "cpu")
    assert torch.equal(trainer.state.weights[0], trainer.state.weights[1])
    batch = trainer.draw(trainer.seeds, trainer.state.step, 3)
    moved = trainer.layer(trainer.state.weights, *batch)
    circuit = lf.Circuit(BASES[name], 2, 3)
    for run in (0, 1):
        expected = circuit(batch.points[run], batch.centers[run], n_layers=1).centers[:, -1]
        torch.testing.assert_close(moved[run], expected)
        again = trainer.layer.circuit_of(trainer.state.weights[run])
        found = again(batch.points[run], batch.centers[run], n_layers=1).centers[:, -1]
        torch.testing.assert_close(found, expected)


def test_a_hard_recipe_is_trained_straight_through():
    settings = Settings(
        Tasks(2, 3, 40), n_steps=100, batch_size=8, evaluate_every=100, n_validation=100
    )
    settings = replace(settings, learning_rate=0.001)
    trained = train(settings, recipe=THROUGH, start="constructed", device="cpu")
    first, last = (trained.history[i].relative[0] for i in (0, -1))
    assert first == pytest.approx(1.0, abs=1e-3)  # a Lloyd step, but for empty clusters
    assert last < first - 0.01
    begun = settings.with_recipe(THROUGH, "constructed").layer.begin([0])
    moved = trained.settings.layer.named(trained.weights - begun)
    assert all(change.any() for change in moved.values())


def test_without_gradients_it_warns_and_queries_stay():
    settings = Settings(Tasks(2, 3, 20), n_steps=2, evaluate_every=2, n_validation=4)
    with pytest.warns(NoGradientWarning, match="8 of 12"):
        trained = train(settings, recipe=lf.recipes.lloyd(), start="constructed", device="cpu")
    moved = trained.settings.layer.named(trained.weights - trained.settings.layer.begin([0]))
    parts = {name.split(".")[-1] for name, change in moved.items() if change.any()}
    assert parts == {"value"}


@pytest.mark.parametrize("recipe", [None, THROUGH], ids=["learned", "lloyd"])
def test_resume_together_and_alone_give_the_same_weights(settings, recipe, tmp_path):
    settings = replace(settings, n_steps=20).with_recipe(recipe or settings.recipe, "constructed")
    settings = replace(settings, start_noise=0.01)
    runs = [Run(0), Run(1, 0.3, "gumbel")]
    whole = train(settings, runs, device="cpu")
    train_until(10, settings, runs, tmp_path, checkpoint_every=1)
    again = train(settings, runs, device="cpu", folder=tmp_path, resume=True)
    assert torch.equal(again.weights, whole.weights)
    assert again.history == whole.history
    alone = train(settings, runs[1:], device="cpu")
    torch.testing.assert_close(alone.weights[0], whole.weights[1], rtol=1e-3, atol=1e-4)


def test_noise_belongs_to_the_seed():
    settings = Settings(Tasks(2, 3, 20), start="constructed", start_noise=0.1)
    both = initial_weights.initial_weights(settings, [Run(4), Run(5)])
    quiet = initial_weights.initial_weights(replace(settings, start_noise=0.0), [Run(4)])
    assert torch.equal(initial_weights.initial_weights(settings, [Run(5)])[0], both[1])
    assert not torch.equal(both[0], both[1])
    assert (both - quiet).std().item() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("recipe", [None, THROUGH], ids=["learned", "lloyd"])
def test_trained_weights_are_saved_with_their_recipe(recipe, tmp_path, rng):
    settings = Settings(Tasks(2, 3, 30), n_steps=4, evaluate_every=2, n_validation=4)
    trained = train(settings, recipe=recipe, start="constructed", device="cpu")
    (card,) = export_runs(tmp_path, trained, compare_runs(trained, n_tasks=4, n_steps=2))
    assert json.loads(card.read_text())["log"]["rows"][0][0] == 0
    found = load_pretrained(card)
    assert found.settings == trained.settings
    assert torch.equal(found.weights, trained.weights)
    points = torch.tensor(rng.uniform(size=(40, 2)), dtype=torch.float32)
    ours, theirs = (c(points, points[:3], n_layers=2) for c in (trained.circuit(), found.circuit()))
    assert torch.equal(ours.centers, theirs.centers)
    model = LearnedKMeans(3, pretrained=str(card), random_state=0).fit(points.numpy())
    assert model.inertia_ > 0


def test_cards_of_earlier_versions_start_at_random():
    settings = Settings(n_steps=7)
    later = ("start", "start_noise", "base", "decoder")
    earlier = {n: v for n, v in settings.written().items() if n not in later}
    assert len(earlier) == len(settings.written()) - 4
    assert Settings.read(earlier) == settings
    with pytest.raises(ValueError, match="settings: found"):
        Settings.read({n: v for n, v in earlier.items() if n != "codes"})


@pytest.mark.parametrize("codes", ["onehot", "binary", None])
@pytest.mark.parametrize("options", LEARNED[2:4] + LEARNED[:1], ids=str)
def test_the_options_of_a_learned_recipe_are_found(options, codes):
    recipe = lf.recipes.learned(
        codes, options["bias"], options["scaled"], options["activation"], 0.0
    )
    found = Settings(base=THROUGH, start="constructed").with_recipe(recipe, "random")
    assert found.recipe == recipe
    assert found.base is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Settings(start="warm"), "start: found 'warm'; pass one of random, constructed"),
        (lambda: Settings(base=THROUGH), "start: found 'random' for the recipe 'lloyd_straight"),
        (lambda: Settings(codes=None, start="constructed"), "no construction with codes=None"),
        (lambda: Settings(start_noise=0.1), "start_noise: is for start='constructed'"),
        (lambda: Settings(start="constructed", start_noise=-1.0), "start_noise: found -1.0"),
        (lambda: train(recipe=lf.recipes.spherical(), start="constructed"), "needs unit vectors"),
        (
            lambda: Settings(Tasks(2, (2, 3), 9), base=THROUGH, start="constructed"),
            "codes: a circuit that names its clusters",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_a_start_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_layer_of_several_stages_is_refused():
    with pytest.raises(ValueError, match="'relocating', which has several sub-layers"):
        train(recipe=lf.recipes.relocating(), start="constructed")
