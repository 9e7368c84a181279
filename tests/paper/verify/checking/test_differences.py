"""Planted mistakes are found; the difference that is shown is the first, and true."""

import contextlib
import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.algorithms import Lloyd, Medoids, Soft, Spherical, Trimmed
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Linear
from lloydformer.circuits.projections import on
from lloydformer.circuits.scores import Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION
from lloydformer.paper.verify.checking.differences import ignore_nan_warnings
from lloydformer.paper.verify.checking.report import snippet

LLOYD, TRIMMED, DOT = recipes.lloyd(), recipes.trimmed(), recipes.lloyd_dot()


@dataclass(frozen=True)
class Farthest:
    """A user's score with the wrong sign."""

    symbol = "far"

    def __call__(self, queries, keys):
        return -Euclidean()(queries, keys)


def changed(recipe, slot, **parts):
    return replace(recipe, **{slot: replace(getattr(recipe, slot), **parts)})


MISTAKES = {  # recipe, algorithm, kind, size of the small problem at most: points, features
    "farthest instead of nearest": (
        changed(LLOYD, "encoder_cross", score=Farthest()),
        Lloyd(),
        "assignment",
        (2, 1),
    ),
    "average ties against argmin": (recipes.lloyd("average"), Lloyd(), "assignment", (2, 1)),
    "argmin against average ties": (LLOYD, Lloyd("average"), "assignment", (2, 1)),
    "average ties on the sphere": (
        recipes.spherical("rms", "average"),
        Spherical(),
        "assignment",
        (3, 6),
    ),
    "wrong temperature": (recipes.soft(1.0), Soft(1.1), "assignment", (2, 1)),
    "wrong sign of a value": (
        changed(LLOYD, "decoder_cross", value=-on(POSITION)),
        Lloyd(),
        "center",
        (2, 1),
    ),
    "the old assignment stays": (
        changed(LLOYD, "encoder_self", value=on(ASSIGNMENT)),
        Lloyd(),
        "center",
        (4, 2),
    ),
    "the old center stays": (
        changed(LLOYD, "decoder_self", value=on(POSITION)),
        Lloyd(),
        "center",
        (2, 1),
    ),
    "no separation": (
        changed(TRIMMED, "decoder_cross", query=on(POSITION), key=on(POSITION)),
        Trimmed("first", 0.95),
        "weight",
        (2, 1),
    ),
    "too little separation": (recipes.robust(0.1, separation=0.5), None, "center", (2, 1)),
    "another fraction": (recipes.trimmed(0.9), Trimmed("first", 0.8), "weight", (6, 1)),
    "no norm": (recipes.spherical(), Lloyd(), "center", (3, 2)),
    "0/0 for an empty cluster": (
        changed(LLOYD, "decoder_cross", activation=Linear()),
        Lloyd(),
        "center",
        (2, 1),
    ),
}


# Mistakes of every kind, in every part of a layer; `make test-all` plants the others as well.
EVERY_KIND = (
    "farthest instead of nearest",
    "average ties on the sphere",
    "wrong temperature",
    "the old assignment stays",
    "no separation",
    "another fraction",
    "0/0 for an empty cluster",
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in EVERY_KIND else pytest.mark.long)
        for name in MISTAKES
    ],
)
def found(request):
    recipe, algorithm, kind, size = MISTAKES[request.param]
    return lf.check(recipe, algorithm, n_problems=2), kind, size


@pytest.mark.long
def test_the_mistake_is_found(found):
    result, kind, _ = found
    assert not result
    assert result.difference.kind == result.smallest.kind == kind


def test_the_first_difference_is_the_first(found):
    """Problems before it agree, and so do the layers before it."""
    result, *_ = found
    number = [o.difference is not None for o in result.outcomes].index(True)
    assert result.difference is result.outcomes[number].difference
    layer = result.difference.layer
    if layer:
        trial = replace(result.difference.trial, n_layers=layer)
        assert (
            lf.check(
                trial.recipe,
                trial.algorithm,
                n_layers=layer,
                n_problems=trial.drawn[1] + 1,
                families=trial.problem.family,
            )
            .outcomes[-1]
            .difference
            is None
        )


@pytest.mark.parametrize("which", ["difference", pytest.param("smallest", marks=pytest.mark.long)])
def test_the_values_shown_are_true(found, which):
    """Computed again, by the algorithm from the centers before the layer, and by a circuit."""
    shown = getattr(found[0], which)
    np.testing.assert_allclose(shown.expected, by_algorithm(shown))
    np.testing.assert_allclose(shown.found, by_circuit(shown), rtol=1e-6, atol=1e-9)
    assert not np.allclose(shown.found, shown.expected, rtol=0, atol=1e-7)


def by_algorithm(shown):
    points, plain = shown.trial.problem.points, shown.trial.algorithm
    assignments = plain.assign(points, shown.start)
    weights = plain.weigh(points, shown.start, assignments, shown.layer)
    centers = plain.place(points, weights)
    return picked(shown, assignments, weights, centers)


def by_circuit(shown):
    problem, t = shown.trial.problem, shown.layer
    circuit = lf.Circuit(shown.trial.recipe, problem.points.shape[1], len(problem.centers))
    name = f"layers.{t}.decoder_cross.attention"
    with ignore_nan_warnings():
        trace = circuit(
            problem.points, problem.centers, t + 1, names_filter=name, seed=shown.trial.seed
        )
    arrays = trace.assignments[t], trace[name], trace.centers[t + 1]
    return picked(shown, *(a.numpy() for a in arrays))


def picked(shown, assignments, weights, centers):
    if shown.kind == "assignment":
        return assignments[shown.point]
    return weights[shown.center, shown.point] if shown.kind == "weight" else centers[shown.center]


def test_the_small_problem_is_small(found):
    result, _, (n_points, n_features) = found
    problem = result.smallest.trial.problem
    assert len(problem.points) <= n_points
    assert problem.points.shape[1] <= n_features
    assert len(problem.centers) <= 2


def test_the_code_runs_both_on_the_small_problem(found):
    result, kind, _ = found
    names = {"recipe": result.recipe, "algorithm": result.outcomes[0].trial.algorithm.algorithm}
    with contextlib.redirect_stdout(io.StringIO()) as printed, ignore_nan_warnings():
        exec(result.snippet, names)
    np.testing.assert_array_equal(names["points"], result.smallest.trial.problem.points)
    np.testing.assert_array_equal(names["centers"], result.smallest.trial.problem.centers)
    last = "assignments" if kind == "assignment" else "centers"
    circuit, plain = getattr(names["trace"], last)[-1].numpy(), getattr(names["history"], last)[-1]
    assert printed.getvalue() == f"{circuit}\n{plain}\n"
    if kind == "weight":
        assert not np.allclose(circuit, plain, atol=1e-7)
        return
    number = result.smallest.point if kind == "assignment" else result.smallest.center
    np.testing.assert_allclose(circuit[number], result.smallest.found, atol=1e-9)
    np.testing.assert_allclose(plain[number], result.smallest.expected, atol=1e-9)


def test_code_of_a_large_problem_has_all_digits_and_layers(found):
    result, *_ = found
    trial = result.difference.trial
    names = {"recipe": trial.recipe, "algorithm": trial.algorithm.algorithm}
    with contextlib.redirect_stdout(io.StringIO()), ignore_nan_warnings():
        exec(snippet(result.difference, known=False), names)
    np.testing.assert_array_equal(names["points"], trial.problem.points)
    np.testing.assert_array_equal(names["centers"], trial.problem.centers)
    assert names["trace"].n_layers == len(names["history"].assignments) == trial.n_layers == 10


def test_the_text_says_where_and_what(found):
    result, kind, _ = found
    text, first = repr(result), result.difference
    problem = first.trial.problem
    assert "differs from" in text.splitlines()[0]
    where = f"(n {len(problem.points)}, d {problem.points.shape[1]}, k {len(problem.centers)})"
    number = f"{problem.family} problem {first.trial.drawn[1]} of seed 0"
    assert f"First difference: {number} {where}, layer {first.layer}" in text
    assert "rounding errors are at most" in text or kind == "center" or "ties decides" in text
    assert text.endswith("\n".join(f"  {line}".rstrip() for line in result.snippet.splitlines()))


def test_a_mistake_that_one_layer_does_not_show_is_found_in_the_run():
    """The squared norm of the old center stays, which only the next layer reads."""
    kept = changed(DOT, "decoder_self", value=-on(POSITION, HALF))
    result = lf.check(kept, n_problems=2, families="clustered")
    assert not result
    assert result.difference.compared is None
    assert result.difference.layer > 0
    assert "of a run over all layers" in repr(result)
    assert len(result.smallest.trial.problem.points) <= 6


@pytest.mark.long
def test_of_two_mistakes_the_small_problem_shows_the_first():
    """Ties are another one, which smaller problems show."""
    both = recipes.trimmed(0.9, ties="average")
    result = lf.check(both, Trimmed("first", 0.8), n_problems=1, families=("clustered", "ties"))
    assert result.difference.nature == result.smallest.nature
    assert result.smallest.kind == "weight"
    assert result.outcomes[-1].difference.kind == "assignment"


def test_the_hint_says_that_no_point_belongs_to_the_center():
    def keeps_empty(points, centers):
        labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        own = [points[labels == j] for j in range(len(centers))]
        return [x.mean(axis=0) if len(x) else c for x, c in zip(own, centers, strict=True)]

    result = lf.check(LLOYD, keeps_empty, families="empty", n_problems=1)
    assert result.difference.kind == "center"
    assert "no point belongs to this center" in repr(result)
    assert lf.check(LLOYD, keeps_empty, families=("uniform", "integer"), n_problems=1)


def test_the_hint_says_that_weights_are_equal():
    wrong = changed(LLOYD, "decoder_cross", value=-on(POSITION))
    assert "the weights are equal: the value" in repr(lf.check(wrong, n_problems=1))


def test_noise_is_drawn_with_the_seed_of_the_algorithm():
    medoids = recipes.medoids()
    assert lf.check(medoids, Medoids(seed=5), n_problems=1, families="uniform")
    seedless = Medoids(seed=5)

    class AnotherSeed:
        seed = None  # as 0
        assign, weigh, place = seedless.assign, seedless.weigh, seedless.place

    assert not lf.check(medoids, AnotherSeed(), n_problems=1, families="uniform")


def test_a_mistake_in_float32():
    result = lf.check(recipes.soft(1.0), Soft(1.1), n_problems=1, dtype=torch.float32)
    assert not result
    assert "np.float32)" in result.snippet


def test_json_holds_what_is_not_a_number():
    wrong = changed(LLOYD, "decoder_cross", activation=Linear())
    values = lf.check(wrong, Lloyd(), n_problems=1, families="empty").as_dict()
    json.loads(json.dumps(values, allow_nan=False))
    assert values["deviation"] is None
    assert values["first"]["circuit"][0] is None
    assert values["rows"]["empty"] == {
        "problems": 1,
        "agree": 0,
        "undefined": 0,
        "deviation": None,
    }
