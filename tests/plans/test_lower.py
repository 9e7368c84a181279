"""Lowering: each recipe gives its plan, or an error that names the part that prevents it."""

from dataclasses import replace

import pytest

from lloydformer import recipes
from lloydformer.app.cli.app import application
from lloydformer.circuits.activations import Gumbel, LimitingSoftmax, NormMax, Softmax, TopK
from lloydformer.circuits.norms import RMSNorm
from lloydformer.circuits.projections import on
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.plans.lower import LoweringError, derive, lower
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.medoids import MedoidsPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.soft import SoftPlan
from lloydformer.plans.trimmed import TrimmedPlan

PLANS = [
    (recipes.lloyd(), MeansPlan()),
    (recipes.lloyd_dot(), MeansPlan()),
    (recipes.lloyd_binary(), MeansPlan()),
    (recipes.spherical("rms"), MeansPlan(directions=True)),
    (recipes.spherical("layer"), MeansPlan(directions=True)),
    (recipes.soft(0.7), SoftPlan(0.7)),
    (recipes.soft_dot(0.7), SoftPlan(0.7)),
    (recipes.trimmed(0.9), TrimmedPlan(0.9)),
    (recipes.robust(0.2), RobustPlan(0.2, "sparsemax")),
    (recipes.robust(0.2, "softmax"), RobustPlan(0.2, "softmax")),
    (recipes.robust(0.2, TopK(7)), RobustPlan(0.2, "softmax", m=7)),
    (recipes.robust_lifted(0.2), RobustPlan(0.2, "sparsemax")),
    (recipes.medoids(3.0), MedoidsPlan(3.0)),
]


@pytest.mark.parametrize(("recipe", "plan"), PLANS, ids=lambda part: str(part).split(":")[0])
def test_each_recipe_gives_its_plan(recipe, plan):
    assert lower(recipe) == plan


def changed(recipe, slot, **parts):
    return replace(recipe, **{slot: replace(getattr(recipe, slot), **parts)})


BASE, DOT, SPHERE = recipes.lloyd(), recipes.lloyd_dot(), recipes.spherical()
TRIMMED, LIFTED = recipes.trimmed(), recipes.robust_lifted()
REFUSED = {
    "ties are shared": (recipes.lloyd("average"), "encoder_cross"),
    "dot products of any length": (changed(BASE, "encoder_cross", score=DotProduct()),
                                   "encoder_cross"),
    "not the lifted distance": (
        changed(DOT, "encoder_cross", query=on(POSITION, SQUARED_NORM, HALF)), "encoder_cross"),
    "half an assignment": (changed(BASE, "encoder_cross", value=0.5 * on(ASSIGNMENT)),
                           "encoder_cross"),
    "shares on the sphere": (changed(SPHERE, "encoder_cross", activation=Softmax(1.0)),
                             "encoder_cross"),
    "finite soft-max": (changed(BASE, "encoder_self", activation=Softmax(1.0)), "encoder_self"),
    "points that find longer ones": (changed(BASE, "encoder_self", score=DotProduct()),
                                     "encoder_self"),
    "points that flee themselves": (changed(BASE, "encoder_self", query=-on(POSITION)),
                                    "encoder_self"),
    "points by their assignment": (
        changed(BASE, "encoder_self", query=on(ASSIGNMENT), key=on(ASSIGNMENT)), "encoder_self"),
    "nothing cancels": (changed(BASE, "encoder_self", value=on(ASSIGNMENT)), "encoder_self"),
    "half of it cancels": (changed(BASE, "decoder_self", value=-0.5 * on(POSITION)),
                           "decoder_self"),
    "squared norms stay": (changed(DOT, "decoder_self", value=-on(POSITION)), "decoder_self"),
    "finite soft-max of centers": (changed(BASE, "decoder_self", activation=Softmax(1.0)),
                                   "decoder_self"),
    "centers by position": (
        changed(BASE, "decoder_self", query=on(POSITION), key=on(POSITION)), "decoder_self"),
    "twice the position": (changed(BASE, "decoder_cross", value=2.0 * on(POSITION)),
                           "decoder_cross"),
    "centers that seek by position": (
        changed(BASE, "decoder_cross", query=on(POSITION), key=on(POSITION)), "decoder_cross"),
    "centers that avoid their points": (changed(BASE, "decoder_cross", query=-on(ASSIGNMENT)),
                                        "decoder_cross"),
    "a draw that is smeared": (changed(recipes.medoids(), "decoder_cross",
                                       activation=Gumbel(0.5)), "decoder_cross"),
    "one gamma for all": (changed(TRIMMED, "decoder_cross", activation=NormMax(1.0)),
                          "decoder_cross"),
    "only the nearest": (changed(TRIMMED, "decoder_cross", activation=LimitingSoftmax()),
                         "decoder_cross"),
    "shares, then the best": (changed(recipes.soft(), "decoder_cross",
                                      activation=LimitingSoftmax()), "decoder_cross"),
    "trimmed directions": (replace(SPHERE, decoder_cross=TRIMMED.decoder_cross), "decoder_cross"),
    "nearly unit vectors": (replace(SPHERE, norm=RMSNorm(epsilon=1.0)), "norm"),
    "another affinity": (changed(LIFTED, "affinity", score=Euclidean()), "affinity"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_does_not_lower_names_the_part_in_the_way(why):
    recipe, slot = REFUSED[why]
    with pytest.raises(LoweringError, match=f"^{slot} prevents lowering: .*circuit$"):
        lower(recipe)


def test_a_derivation_has_a_step_for_each_part_and_ends_with_the_plan():
    steps = derive(recipes.spherical()).steps
    slots = [step.split(":")[0] for step in steps[:-1]]
    assert slots == ["encoder_self", "encoder_cross", "decoder_self", "decoder_cross", "norm"]
    assert steps[-1] == "What is left is MeansPlan(directions=True)."
    assert derive(recipes.lloyd_dot()).steps[-2].startswith("feedforward: ")


@pytest.mark.parametrize("name", [r.name for r in recipes.table()])
def test_the_command_explains(name, capsys):
    application(["recipes"])(["recipes", "--explain", name], standalone_mode=False)
    said = " ".join(capsys.readouterr().out.split())
    recipe = next(r for r in recipes.table() if r.name == name)
    for number, step in enumerate(derive(recipe).steps, start=1):
        assert f"{number}. {step}" in said
