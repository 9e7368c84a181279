"""`softened` and `straight_through`: recipes whose queries and keys can be trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import (
    Gumbel,
    LimitingSoftmax,
    Linear,
    Reach,
    Softmax,
    StraightThrough,
)
from lloydformer.circuits.gradients import NoGradientWarning, has_gradient
from lloydformer.circuits.recipes.with_gradients import forward_only
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.plans.lower import LoweringError, lower

MAKERS = (*lf.recipes.IN_TABLE, *lf.recipes.BEYOND_TABLE, *lf.recipes.TRAINED)
ALL = {make.__name__: make() for make in MAKERS}
HARD = {
    n: r for n, r in ALL.items() if not all(has_gradient(h.activation) for h in r.heads.values())
}
STAGED = ("relocating", "medoids_swap")


def problem(recipe):
    points = torch.tensor(np.random.default_rng(5).normal(size=(2, 14, 3)))
    if recipe.norm:
        points = points / points.norm(dim=-1, keepdim=True)
    return points, points[:, :3].clone()


def run(recipe, **options):
    return lf.Circuit(recipe, 3, 3, **options)(*problem(recipe), n_layers=3, seed=0)


def activations(recipe):
    return {name: head.activation for name, head in recipe.heads.items()}


@pytest.mark.parametrize(
    ("name", "as_printed"),
    [(n, False) for n in [*HARD, "lloyd, averaged"]] + [(n, True) for n in HARD if n not in STAGED],
)
def test_straight_through_gives_the_same_centers_bit_for_bit(name, as_printed):
    """What stands outside of the transformer is the same too: tie rule, tolerances, noise."""
    recipe = HARD.get(name, lf.recipes.lloyd("average"))
    recipes = (recipe, lf.recipes.straight_through(recipe, 2.0))
    plain, through = (run(one, as_printed=as_printed) for one in recipes)
    assert torch.equal(plain.centers, through.centers)
    assert torch.equal(plain.assignments, through.assignments)
    assert plain.names == through.names
    assert [str(one) for one in plain.outside] == [str(one) for one in through.outside]


@pytest.mark.parametrize("name", sorted(HARD.keys() - {"symmetric"}))
def test_with_straight_through_every_weight_gets_a_gradient(name, recwarn):
    recipe = lf.recipes.straight_through(HARD[name], 2.0)
    points, centers = problem(recipe)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    assert not recwarn.list
    circuit(points, centers, n_layers=3, seed=0).centers.square().sum().backward()
    assert all(w.grad is not None and w.grad.isfinite().all() for w in circuit.parameters())


@pytest.mark.parametrize("name", sorted(HARD.keys() - {*STAGED, "robust", "symmetric"}))
def test_the_gradients_of_straight_through_are_not_zero(name):
    recipe = lf.recipes.straight_through(HARD[name], 1.0)
    points, centers = problem(recipe)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    circuit(points, centers, n_layers=3, seed=0).centers.square().sum().backward()
    assert [n for n, w in circuit.named_parameters() if not w.grad.any()] == []


def test_with_sparsemax_the_separation_stops_the_gradient_of_the_encoder():
    """The score -|x - c|² - δ |e - y|² of a center's own points is stationary in y, and sparsemax
    gives no other points a weight."""
    recipe = lf.recipes.straight_through(lf.recipes.robust(), 1.0)
    circuit = lf.Circuit(recipe, 3, 3, trainable=True).double()
    circuit(*problem(recipe), n_layers=3).centers.square().sum().backward()
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


@pytest.mark.parametrize("change", lf.recipes.CHANGES, ids=lambda change: change.__name__)
def test_a_recipe_without_hard_choices_stays_as_it_is(change):
    assert change(lf.recipes.learned(), 3.0) == lf.recipes.learned()


def test_what_cannot_be_softened_is_refused():
    with pytest.raises(ValueError, match=r"'relocating', which chooses between proposals"):
        lf.recipes.softened(lf.recipes.relocating(), 3.0)
    with pytest.raises(ValueError, match="binary codes cannot hold a point shared by two"):
        lf.recipes.softened(lf.recipes.lloyd_binary(), 3.0)
    for change in lf.recipes.CHANGES:
        with pytest.raises(ValueError, match=r"inverse_temperature: found 0\.0"):
            change(lf.recipes.lloyd(), 0.0)
