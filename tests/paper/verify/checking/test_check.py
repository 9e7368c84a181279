"""Every recipe of the package agrees with the algorithm that its name stands for."""

from dataclasses import fields

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.circuits.symmetric import Fixed
from lloydformer.paper.verify.known import known_algorithm

PAIRED = [name for name in recipes.MAKERS if name not in ("relocating", "learned")]
VARIANTS = {
    "lloyd averaged": recipes.lloyd("average"),
    "lloyd_dot averaged": recipes.lloyd_dot("average"),
    "spherical averaged": recipes.spherical("rms", "average"),
    "spherical by layer norm": recipes.spherical("layer"),
    "soft": recipes.soft(0.05),
    "trimmed by half": recipes.trimmed(0.5),
    "trimmed averaged": recipes.trimmed(0.8, ties="average"),
    "robust by soft-max": recipes.robust(0.1, "softmax"),
    "robust averaged": recipes.robust(0.1, ties="average"),
    "medoids with little separation": recipes.medoids(0.5, "average"),
    "medoids within clusters": recipes.medoids(None),
    "symmetric": recipes.symmetric(Fixed(sharpness=(0.2,))),
}


def some(names, often):
    """All names; those that are not in `often` are left to `make test-all`."""
    return [pytest.param(n, marks=[] if n in often else pytest.mark.long) for n in names]


@pytest.mark.parametrize("name", PAIRED)
def test_a_recipe_agrees(name):
    result = lf.check(recipes.MAKERS[name](), n_problems=1)
    assert result, result
    assert result.deviation <= 1e-9


@pytest.mark.parametrize(
    "name",
    some(
        VARIANTS,
        (
            "lloyd averaged",
            "spherical by layer norm",
            "soft",
            "trimmed averaged",
            "medoids within clusters",
        ),
    ),
)
def test_a_variant_agrees(name):
    assert lf.check(VARIANTS[name], n_problems=1, seed=1)


@pytest.mark.parametrize(
    "name",
    some(
        [n for n in PAIRED if n not in ("symmetric", "medoids_swap")],
        ("lloyd_dot", "spherical", "trimmed", "robust_lifted"),
    ),
)
def test_a_recipe_agrees_in_float32(name):
    result = lf.check(recipes.MAKERS[name](), n_problems=1, n_layers=4, dtype=torch.float32)
    assert result, result


def test_cuts_that_rounding_decides_are_no_differences():
    result = lf.check(recipes.trimmed(0.5), n_problems=8, families=("uniform", "integer", "ties"))
    assert result, result


def test_relocation_agrees():
    """Not with an outlier: the plain algorithm has another rule for equal costs then."""
    families = ("clustered", "uniform", "integer", "shifted", "duplicates", "empty", "scaled")
    result = lf.check(recipes.relocating(2), n_problems=1, n_layers=3, families=families)
    assert result, result


@pytest.mark.long
def test_a_relocation_that_rounding_decides_is_not_undefined():
    result = lf.check(recipes.relocating(), families="ties")
    assert result, result
    assert sum(o.undecided for o in result.outcomes) > 0
    assert sum(o.undefined for o in result.outcomes) == 0


@pytest.mark.long
@pytest.mark.parametrize("recipe", [*(recipes.MAKERS[n]() for n in PAIRED), *VARIANTS.values()])
def test_recipes_agree_on_many_problems(recipe):
    result = lf.check(recipe, n_problems=12, seed=2)
    assert result, result


PARAMETERS = [
    (recipes.lloyd("average"), algorithms.Lloyd("average")),
    (recipes.lloyd_binary(), algorithms.LloydBinary()),
    (recipes.spherical("layer", "average"), algorithms.Spherical("average")),
    (recipes.soft_dot(3.0), algorithms.Soft(3.0)),
    (recipes.trimmed(0.7, 5.0), algorithms.Trimmed("first", 0.7)),
    (recipes.robust(0.2, "softmax"), algorithms.Robust("first", 0.2, "softmax")),
    (recipes.robust_lifted(0.2), algorithms.Robust("first", 0.2, "sparsemax", lifted=True)),
    (recipes.medoids(4.0), algorithms.Medoids("first", 4.0, seed=7)),
]


@pytest.mark.parametrize(("recipe", "expected"), PARAMETERS, ids=lambda v: repr(v)[:12])
def test_the_known_algorithm_has_the_parameters_of_the_recipe(recipe, expected):
    assert known_algorithm(recipe, seed=7) == expected


def test_an_algorithm_of_the_register_is_known(monkeypatch):
    from lloydformer.estimators import ALGORITHMS, RegisteredAlgorithm

    recipe = renamed(recipes.lloyd())
    entry = RegisteredAlgorithm("mine", lf.KMeans, lambda: recipe, algorithms.Lloyd, "")
    monkeypatch.setitem(ALGORITHMS, "mine", entry)
    assert known_algorithm(recipe) == algorithms.Lloyd()


def renamed(recipe, name="mine"):
    parts = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    return lf.Recipe(**{**parts, "name": name})


UNKNOWN = {
    "another name": (renamed(recipes.lloyd()), "no algorithm of this name is known"),
    "no keep": (renamed(recipes.lloyd(), "trimmed"), "do not say its keep"),
    "no tie rule": (renamed(recipes.soft(), "lloyd"), "do not say its ties"),
    "another activation": (recipes.robust(0.1, TopK(3)), "do not say its activation"),
    "other numbers": (
        recipes.symmetric(Fixed(sharpness=(1.0, 2.0), log_belonging=(1.0, 0.0), stride=(1.0, 0.0))),
        "not those of soft k-means",
    ),
    "another relocation": (recipes.relocating(sharpness=1.0), "moved centers and of draws"),
    "another exchange": (recipes.medoids_swap(3, margin=0.5), "only the number of draws"),
}


@pytest.mark.parametrize("reason", UNKNOWN)
def test_a_recipe_without_a_known_algorithm_says_what_to_pass(reason):
    recipe, complaint = UNKNOWN[reason]
    with pytest.raises(ValueError, match=complaint) as error:
        lf.check(recipe)
    assert "pass a function step(points, centers)" in str(error.value)


def test_problems_are_the_same_for_the_same_seed():
    one, other, third = (lf.check(recipes.lloyd(), n_problems=1, seed=s) for s in (3, 3, 4))
    for a, b, c in zip(one.outcomes, other.outcomes, third.outcomes, strict=True):
        np.testing.assert_array_equal(a.trial.problem.points, b.trial.problem.points)
        assert not np.array_equal(a.trial.problem.points, c.trial.problem.points)
