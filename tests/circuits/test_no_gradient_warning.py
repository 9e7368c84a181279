"""The warning names exactly the weights that no gradient reaches."""

import subprocess
import sys
import warnings
from dataclasses import dataclass, replace

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import (
    FirstOfEquals,
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    LogSoftmax,
    Lots,
    NormMax,
    Ranked,
    Softmax,
    Sparsemax,
    StraightThrough,
    TopK,
)
from lloydformer.circuits.activations.contract import NOTHING, Activation
from lloydformer.circuits.gradients import NoGradientWarning, has_gradient
from lloydformer.circuits.norms import zero_sum

MAKERS = (*lf.recipes.IN_TABLE, *lf.recipes.BEYOND_TABLE, *lf.recipes.TRAINED)
RECIPES = {make.__name__: make() for make in MAKERS} | {
    "relocating": lf.recipes.relocating(1),
    "lloyd, averaged": lf.recipes.lloyd("average"),
    "spherical, layer": lf.recipes.spherical("layer"),
    "robust, softmax": lf.recipes.robust(0.5, "softmax"),
    "robust, top-2": lf.recipes.robust(0.5, TopK(2)),
    "robust, top-1": lf.recipes.robust(0.5, TopK(1)),
    "medoids with a temperature": replace(
        lf.recipes.medoids(1.0),
        decoder_cross=replace(lf.recipes.medoids(1.0).decoder_cross, activation=Gumbel(0.7)),
    ),
    "lloyd and relocating": [lf.recipes.lloyd(), lf.recipes.relocating(1)],
}


@dataclass(frozen=True)
class Rounded(Activation):
    """Its weights are connected with the scores, and their derivative is zero."""

    short, symbol = "R", "R"

    def __call__(self, scores, context=NOTHING):
        return scores.softmax(dim=-1).round()

    def lowering(self, reach, eps):
        return reach


def warned(recipe, n_features=3):
    """A trainable circuit, and the names in the warnings that its constructor gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        circuit = lf.Circuit(recipe, n_features, n_clusters=3, trainable=True).double()
    assert all(w.category is NoGradientWarning for w in caught)
    return circuit, [name for w in caught for name in w.message.names]


def problem(circuit, rng):
    """Three groups of five points; the first three are of one group, so relocation pays."""
    d, norm = circuit.n_features, circuit.schedule[0].norm
    points = torch.tensor(rng.normal(size=(12, 15, d - bool(norm and norm.zero_sum))))
    if norm:
        points = points / points.norm(dim=-1, keepdim=True)
        return zero_sum(points) if norm.zero_sum else points
    return points + torch.arange(0, 30, 10).repeat_interleave(5)[:, None]


def differentiated(circuit, rng, noise):
    """The gradient of every weight, after four layers; with noise, at weights near the given."""
    points = problem(circuit, rng)
    with torch.no_grad():
        for weight in circuit.parameters():
            weight += noise * torch.tensor(rng.normal(size=weight.shape))
    centers = circuit(points, points[:, :3], n_layers=4, seed=0).centers
    (centers.square().sum() + centers.sin().sum()).backward()
    return {n: w.grad for n, w in circuit.named_parameters() if w.numel()}


@pytest.mark.parametrize("name", RECIPES)
def test_the_weights_named_are_those_without_a_gradient(name, rng):
    """In general; at the constructed weights themselves some more gradients are zero."""
    circuit, names = warned(RECIPES[name])
    gradients = differentiated(circuit, rng, noise=1e-6)
    assert all(g.isfinite().all() for g in gradients.values() if g is not None)
    assert names == [n for n, g in gradients.items() if g is None or not g.any()]


@pytest.mark.parametrize("name", RECIPES)
def test_at_the_constructed_weights_they_have_no_gradient_either(name, rng):
    circuit, names = warned(RECIPES[name])
    gradients = differentiated(circuit, rng, noise=0.0)
    assert all(gradients[n] is None or not gradients[n].any() for n in names)
    if name != "robust, top-1":  # zero there
        assert names == [n for n, g in gradients.items() if g is None]


def test_queries_and_keys_of_lloyds_algorithm():
    _, names = warned(lf.recipes.lloyd())
    slots = ("encoder_cross", "encoder_self", "decoder_cross", "decoder_self")
    assert names == [f"layers.0.{slot}.{part}" for slot in slots for part in ("query", "key")]


def test_the_text_says_how_many_which_and_what_helps():
    words = (
        r"^trainable: 8 of 12 weights get no gradient: layers.0.encoder_cross.query, .*"
        r"layers.0.decoder_self.key\. .* lf.recipes.softened\(.*lf.recipes.straight_through\("
    )
    with pytest.warns(NoGradientWarning, match=words):
        lf.Circuit(lf.recipes.lloyd(), 2, 3, trainable=True)


def test_a_long_list_is_cut_in_the_text_only():
    with pytest.warns(NoGradientWarning, match="and 118 more") as caught:
        lf.Circuit(lf.recipes.relocating(n_moved=3), 2, 3, trainable=True)
    assert len(caught[0].message.names) == 138
    assert len(str(caught[0].message)) < 1500


def test_the_warning_is_about_the_line_that_makes_the_circuit(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import lloydformer as lf\ncircuit = lf.Circuit(lf.recipes.lloyd(), 2, 3, trainable=True)\n"
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stderr.startswith(f"{script}:2: NoGradientWarning: trainable: 8 of 12")


@pytest.mark.parametrize("recipe", [lf.recipes.learned(), lf.recipes.symmetric()])
def test_where_all_weights_can_be_trained_there_is_no_warning(recipe):
    assert warned(recipe)[1] == []


def test_constructed_weights_that_are_not_trained_need_no_warning(recwarn):
    lf.Circuit(lf.recipes.lloyd(), 2, 3)
    assert not recwarn.list


ACTIVATIONS = {
    False: [
        LimitingSoftmax(), LimitingSoftmax("first"), Gumbel(), Ranked(), Ranked(2),
        Ranked(in_order=True), FirstOfEquals(), Lots(), Lots(2.0, Ranked()), NormMax(keep=0.5),
        NormMax(0.5), TopK(1), Rounded(), StraightThrough(Softmax(), LimitingSoftmax()),
    ],
    True: [
        Softmax(), Softmax(1e9), Softmax(1e-9), LogSoftmax(), Linear(), Identity(), Gumbel(0.1),
        Sparsemax(), Sparsemax(1e9), Sparsemax(1e-9), TopK(2), TopK(2, 1e9),
        StraightThrough(LimitingSoftmax()),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "expected"), [(a, e) for e, group in ACTIVATIONS.items() for a in group], ids=str
)
def test_which_activations_have_a_gradient(activation, expected):
    assert has_gradient(activation) is expected
    with torch.no_grad():
        assert has_gradient(activation) is expected
    with torch.inference_mode():
        assert has_gradient(activation) is expected


def test_an_activation_that_refuses_the_scores_is_not_accused():
    assert has_gradient(Ranked(1000))
