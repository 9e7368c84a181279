"""Recipes are restored from JSON, and JSON that is not a recipe is refused."""

import json
from dataclasses import replace

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import NormMax, TopK
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.serialise import deserialise, serialise

RECIPES = [
    *lf.recipes.table(),
    lf.recipes.soft_dot(2.0),
    lf.recipes.lloyd_binary(),
    lf.recipes.learned("binary", bias=False, dropout=0.1),
    lf.recipes.lloyd("average"),
    lf.recipes.symmetric(),
    lf.recipes.spherical("layer"),
    lf.recipes.robust_lifted(0.3, TopK(4), 17.0),
    lf.recipes.relocating(2, 4, 7, 1.5, 0.25),
    lf.recipes.recombining(2, 4, 1, 0.25, 0.125),
    lf.recipes.medoids_swap(3, 0.5),
    lf.recipes.constrained([5, 0.5, 1], 1.0),
    lf.recipes.constrained(1, None, inverse_temperature=2.0, n_rounds=30),
    lf.recipes.mixture("tied", weights="equal", regularisation=0.5),
    lf.recipes.missing("impute"),
    lf.recipes.prototypes((2, 3), 1),
    replace(lf.recipes.lloyd_dot(), name="mine", feedforward=Quadratic("rectified")),
    lf.recipes.lloyd_rectified(torch.eye(3)),
    lf.recipes.with_dot_products(lf.recipes.trimmed(inverse_temperature=2.0)),
    lf.recipes.on_sphere(lf.recipes.medoids(3.0)),
    lf.recipes.learned(decoder="dot"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_is_restored_equal(recipe):
    again = deserialise(json.loads(json.dumps(serialise(recipe), allow_nan=False)))
    assert again == recipe
    assert str(again) == str(recipe)


def test_every_named_recipe_is_tested():
    changes = {change.__name__ for change in lf.recipes.CHANGES}  # test_with_gradients.py has them
    named = set(lf.recipes.__all__) - changes - {"table"}
    assert {r.name for r in RECIPES} >= named


def test_an_activation_is_restored_equal():
    assert deserialise(serialise(NormMax(inverse_temperature=3.0))) == NormMax(
        inverse_temperature=3.0
    )


def changed(**change):
    return {**serialise(lf.recipes.lloyd()), **change}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"part": "Birch"}, "found part 'Birch'; known parts are Recipe"),
        ({"name": "lloyd"}, "found part None"),
        (changed(depth=3), "Recipe: found fields .*'depth'"),
        (changed(name=3), "Recipe: found name 3"),
        (changed(tokens=None), "Recipe: found tokens None"),
        (changed(norm={"part": "OneHot"}), "Recipe: found norm"),
        ({"part": "TopK", "m": 2.5, "inverse_temperature": 1.0}, "TopK: found m 2.5"),
        ({"part": "TopK", "m": 0, "inverse_temperature": 1.0}, "m: found 0"),
        ({"part": "Softmax", "inverse_temperature": "1"}, "found inverse_temperature '1'"),
        ({"part": "RMSNorm", "epsilon": float("nan")}, "found epsilon nan"),
        ({"part": "LimitingSoftmax", "ties": "last"}, "found ties 'last'"),
        (
            {
                "part": "Lots",
                "power": 0.0,
                "choice": {"part": "Ranked", "rank": None, "in_order": False},
            },
            "power: found",
        ),
        ({"part": "Counts", "spares": 0, "draws": 1, "candidates": 1}, "spares: found 0"),
        ({**serialise(lf.recipes.relocating()), "inner": [["position"]]}, "Staged: found inner"),
    ],
    ids=str,
)
def test_wrong_json_is_refused(found, words):
    with pytest.raises(ValueError, match=words):
        deserialise(found)


@pytest.mark.parametrize("value", [float("inf"), object(), {1}], ids=type)
def test_values_without_json_are_refused(value):
    with pytest.raises(ValueError, match="cannot be serialised"):
        serialise(value)


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), float("nan"), float("inf")],
    ids=["large", "negative", "nan", "inf"],
)
def test_numbers_that_no_float_holds_are_refused(value):
    part = serialise(NormMax(2.0))
    (name,) = [name for name, found in part.items() if found == 2.0]
    assert deserialise({**part, name: 3}) == NormMax(3.0)
    with pytest.raises(ValueError, match=f"NormMax: found {name} .*; expected a value of type"):
        deserialise({**part, name: value})
