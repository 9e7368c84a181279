"""Gradients of circuits, softened and straight-through recipes, and a warning without gradient."""

import subprocess
import sys
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

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
    Reach,
    Softmax,
    Sparsemax,
    StraightThrough,
    TopK,
)
from lloydformer.circuits.activations.contract import NOTHING, Activation
from lloydformer.circuits.gradients import NoGradientWarning, forward_only, has_gradient
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.plans.lower import LoweringError, lower

MAKERS = (*lf.recipes.IN_TABLE, *lf.recipes.BEYOND_TABLE, *lf.recipes.TRAINED)
ALL = {make.__name__: make() for make in MAKERS}
HARD = {
    n: r for n, r in ALL.items() if not all(has_gradient(h.activation) for h in r.heads.values())
}
STAGED = ("relocating", "medoids_swap")


def small_problem(recipe):
    points = torch.tensor(np.random.default_rng(5).normal(size=(2, 14, 3)))
    if recipe.norm:
        points = points / points.norm(dim=-1, keepdim=True)
    return points, points[:, :3].clone()


def run(recipe, **options):
    return lf.Circuit(recipe, 3, 3, **options)(*small_problem(recipe), n_layers=3, seed=0)


def activations(recipe):
    return {name: head.activation for name, head in recipe.heads.items()}


@pytest.mark.parametrize(
    ("name", "as_in_paper"),
    [(n, False) for n in [*HARD, "lloyd, averaged"]] + [(n, True) for n in HARD if n not in STAGED],
)
def test_straight_through_gives_the_same_centers_bit_for_bit(name, as_in_paper):
    """What stands outside of the transformer is the same too: tie rule, tolerances, noise."""
    recipe = HARD.get(name, lf.recipes.lloyd("average"))
    recipes = (recipe, lf.recipes.straight_through(recipe, 2.0))
    plain, through = (run(one, as_in_paper=as_in_paper) for one in recipes)
    assert torch.equal(plain.centers, through.centers)
    assert torch.equal(plain.assignments, through.assignments)
    assert plain.names == through.names
    assert [str(one) for one in plain.outside] == [str(one) for one in through.outside]


@pytest.mark.parametrize("name", sorted(HARD.keys() - {"symmetric"}))
def test_with_straight_through_every_weight_gets_a_gradient(name, recwarn):
    recipe = lf.recipes.straight_through(HARD[name], 2.0)
    points, centers = small_problem(recipe)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    assert not recwarn.list
    circuit(points, centers, n_layers=3, seed=0).centers.square().sum().backward()
    assert all(w.grad is not None and w.grad.isfinite().all() for w in circuit.parameters())


@pytest.mark.parametrize("name", sorted(HARD.keys() - {*STAGED, "robust", "symmetric"}))
def test_the_gradients_of_straight_through_are_not_zero(name):
    recipe = lf.recipes.straight_through(HARD[name], 1.0)
    points, centers = small_problem(recipe)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    circuit(points, centers, n_layers=3, seed=0).centers.square().sum().backward()
    assert [n for n, w in circuit.named_parameters() if not w.grad.any()] == []


def test_with_sparsemax_the_separation_stops_the_gradient_of_the_encoder():
    """The score -|x - c|² - δ |e - y|² of a center's own points is stationary in y, and sparsemax
    gives no other points a weight."""
    recipe = lf.recipes.straight_through(lf.recipes.robust(), 1.0)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    circuit(*small_problem(recipe), n_layers=3).centers.square().sum().backward()
    zero = {n.split(".")[2] for n, w in circuit.named_parameters() if not w.grad.any()}
    assert zero == {"encoder_cross", "encoder_self"}


def test_straight_through_changes_hard_heads_only():
    recipe = lf.recipes.straight_through(lf.recipes.robust(0.5), 2.0)
    assert activations(recipe) == {
        "encoder_cross": StraightThrough(LimitingSoftmax("first"), Softmax(2.0)),
        "encoder_self": StraightThrough(LimitingSoftmax(), Softmax(2.0)),
        "decoder_cross": lf.recipes.robust(0.5).decoder_cross.activation,
        "decoder_self": StraightThrough(LimitingSoftmax(), Softmax(2.0)),
    }
    assert recipe.ties == "first"
    assert recipe.name == "robust_straight_through"
    assert lf.recipes.straight_through(recipe, 3.0) == recipe


@pytest.mark.parametrize("name", ["trimmed", "robust", "robust_lifted"])
def test_the_separation_is_that_of_the_forward_pass(name):
    reach = Reach(nearest=2.0, farthest=7.0)
    plain, through = (
        recipe.separation(reach, n_clusters=3, eps=1e-16)
        for recipe in (ALL[name], lf.recipes.straight_through(ALL[name], 2.0))
    )
    assert plain == through > 0


def test_draws_keep_their_noise_in_the_backward_pass():
    recipe = lf.recipes.straight_through(lf.recipes.medoids(), 4.0)
    assert recipe.decoder_cross.activation == StraightThrough(Gumbel(), Gumbel(0.25))


@pytest.mark.parametrize("name", ALL)
def test_changed_recipes_are_restored_from_json(name):
    recipe = lf.recipes.straight_through(ALL[name], 2.0)
    assert deserialise(serialise(recipe)) == recipe
    assert str(deserialise(serialise(recipe))) == str(recipe)


@pytest.mark.parametrize("name", ALL)
def test_without_straight_through_the_recipe_is_the_one_before(name):
    recipe = lf.recipes.straight_through(ALL[name], 2.0)
    again = replace(forward_only(recipe), name=ALL[name].name, algorithm=ALL[name].algorithm)
    assert again == ALL[name]


@pytest.mark.parametrize("make", lf.recipes.IN_TABLE, ids=lambda make: make.__name__)
def test_lowering_sees_through(make):
    recipe = make()
    assert lower(lf.recipes.straight_through(recipe, 2.0)) == lower(recipe)


def test_lowering_refuses_what_it_refused_before():
    with pytest.raises(LoweringError, match="tied points are shared"):
        lower(lf.recipes.straight_through(lf.recipes.lloyd("average"), 2.0))


def test_an_estimator_takes_it(rng):
    points = rng.normal(size=(60, 3))
    plain, through = (
        lf.CircuitClusterer(recipe=recipe, n_clusters=3, random_state=0).fit(points)
        for recipe in (
            lf.recipes.lloyd(),
            lf.recipes.straight_through(lf.recipes.lloyd(), 2.0),
        )
    )
    assert (plain.cluster_centers_ == through.cluster_centers_).all()


def test_softened_lloyd_is_soft_kmeans():
    for before, after in (
        (lf.recipes.lloyd(), lf.recipes.soft(3.0)),
        (lf.recipes.lloyd_dot(), lf.recipes.soft_dot(3.0)),
    ):
        found = lf.recipes.softened(before, 3.0)
        assert found.heads == after.heads
        assert found.name == f"{before.name}_softened"
        assert lower(found) == lower(after)


def test_what_takes_the_place_of_each_hard_choice():
    def cross(recipe):
        changed = lf.recipes.softened(recipe, 4.0)
        return changed.encoder_cross.activation, changed.decoder_cross.activation

    assert cross(lf.recipes.lloyd()) == (Softmax(4.0), Linear())
    assert cross(lf.recipes.spherical()) == (Softmax(4.0), Linear())
    assert cross(lf.recipes.trimmed()) == (Softmax(4.0), Softmax(4.0))
    assert cross(lf.recipes.medoids()) == (Softmax(4.0), Gumbel(0.25))
    robust = lf.recipes.robust(0.5)
    assert cross(robust) == (Softmax(4.0), robust.decoder_cross.activation)


def test_self_attention_is_softened_if_asked():
    for changed, expected in (
        (lf.recipes.softened(lf.recipes.lloyd(), 4.0), LimitingSoftmax()),
        (lf.recipes.softened(lf.recipes.lloyd(), 4.0, self_attention=9.0), Softmax(9.0)),
    ):
        assert changed.encoder_self.activation == expected
        assert changed.decoder_self.activation == expected


def test_fewer_weights_have_no_gradient_then():
    with pytest.warns(NoGradientWarning, match="4 of 12"):
        lf.Circuit(lf.recipes.softened(lf.recipes.lloyd(), 4.0), 3, 3, trainable=True)
    all_soft = lf.recipes.softened(lf.recipes.lloyd(), 4.0, self_attention=9.0)
    lf.Circuit(all_soft, 3, 3, trainable=True)  # no warning


@pytest.mark.parametrize("name", ["lloyd", "lloyd_dot", "spherical", "robust", "robust_lifted"])
def test_in_the_limit_a_softened_recipe_is_the_recipe(name):
    hard, soft = run(ALL[name]).centers, run(lf.recipes.softened(ALL[name], 1e7)).centers
    torch.testing.assert_close(soft, hard, rtol=0, atol=1e-9)


SOFTER = (lf.recipes.softened, lf.recipes.straight_through)


@pytest.mark.parametrize("change", SOFTER, ids=lambda change: change.__name__)
def test_a_recipe_without_hard_choices_stays_as_it_is(change):
    assert change(lf.recipes.learned(), 3.0) == lf.recipes.learned()


def test_what_cannot_be_softened_is_refused():
    with pytest.raises(ValueError, match=r"'relocating', which chooses between proposals"):
        lf.recipes.softened(lf.recipes.relocating(), 3.0)
    with pytest.raises(ValueError, match="binary codes cannot hold a point shared by two"):
        lf.recipes.softened(lf.recipes.lloyd_binary(), 3.0)
    for change in SOFTER:
        with pytest.raises(ValueError, match=r"inverse_temperature: found 0\.0"):
            change(lf.recipes.lloyd(), 0.0)


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


def points_for(circuit, rng):
    """Three groups of five points; the first three are of one group, so relocation pays."""
    d, norm = circuit.n_features, circuit.schedule[0].norm
    points = torch.tensor(rng.normal(size=(12, 15, d - bool(norm and norm.zero_sum))))
    if norm:
        points = points / points.norm(dim=-1, keepdim=True)
        return zero_sum(points) if norm.zero_sum else points
    return points + torch.arange(0, 30, 10).repeat_interleave(5)[:, None]


def differentiated(circuit, rng, noise):
    """The gradient of every weight, after four layers; with noise, at weights near the given."""
    points = points_for(circuit, rng)
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
        LimitingSoftmax(),
        LimitingSoftmax("first"),
        Gumbel(),
        Ranked(),
        Ranked(2),
        Ranked(in_order=True),
        FirstOfEquals(),
        Lots(),
        Lots(2.0, Ranked()),
        NormMax(keep=0.5),
        NormMax(0.5),
        TopK(1),
        Rounded(),
        StraightThrough(Softmax(), LimitingSoftmax()),
    ],
    True: [
        Softmax(),
        Softmax(1e9),
        Softmax(1e-9),
        LogSoftmax(),
        Linear(),
        Identity(),
        Gumbel(0.1),
        Sparsemax(),
        Sparsemax(1e9),
        Sparsemax(1e-9),
        TopK(2),
        TopK(2, 1e9),
        StraightThrough(LimitingSoftmax()),
    ],
}


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
