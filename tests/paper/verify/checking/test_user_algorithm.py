"""What users pass: step functions, objects, mistakes of their own, decisions of rounding."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.algorithms import Lloyd, Medoids, Soft, Trimmed
from lloydformer.circuits import recipes
from lloydformer.circuits.projections import on
from lloydformer.circuits.subspaces import POSITION
from lloydformer.paper.verify.checking.differences import compare_trial
from lloydformer.paper.verify.checking.user_algorithm import as_algorithm
from lloydformer.paper.verify.problems import Problem
from lloydformer.paper.verify.trials import Trial

LLOYD = recipes.lloyd()
FEW = {"n_problems": 1, "families": ("clustered", "ties", "duplicates")}


def lloyd(points, centers):
    labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    own = [points[labels == j] for j in range(len(centers))]
    return [(x if len(x) else points).mean(axis=0) for x in own]


def trimmed(points, centers):
    """Without the rule that ties at the cut stay, and without a word about decisions."""
    plain = Trimmed("first", 0.5)
    assignments = plain.assign(points, centers)
    return plain.place(points, plain.weigh(points, centers, assignments, 0))


def test_a_step_function_agrees():
    result = lf.check(LLOYD, lloyd, n_problems=2)
    assert result, result
    assert "agrees with lloyd" in repr(result)


def test_a_step_function_may_take_the_iteration():
    plain = Medoids(seed=3)

    def step(points, centers, iteration):
        assignments = plain.assign(points, centers)
        return plain.place(points, plain.weigh(points, centers, assignments, iteration))

    step.seed = 3
    assert lf.check(recipes.medoids(), step, n_problems=1)
    assert not lf.check(recipes.medoids(), lambda p, c: step(p, c, 0), **FEW | {"n_problems": 2})


def test_the_rule_for_ties_of_a_step_function_counts_where_numbers_are_exact():
    result = lf.check(recipes.lloyd("average"), lloyd, families="ties")
    assert result.difference.kind == "center"
    assert len(result.smallest.trial.problem.points) <= 3


def test_a_step_function_gets_copies():
    def careless(points, centers):
        new = lloyd(points, centers)
        points[:], centers[:] = 0.0, 0.0
        return new

    result = lf.check(LLOYD, careless, **FEW)
    assert result
    for found, drawn in zip(result.outcomes, lf.check(LLOYD, **FEW).outcomes, strict=True):
        np.testing.assert_array_equal(found.trial.problem.points, drawn.trial.problem.points)


def test_the_code_of_a_step_function_runs(capsys):
    def halfway(points, centers):
        return (centers + np.array(lloyd(points, centers))) / 2

    result = lf.check(LLOYD, halfway, **FEW)
    names = {"recipe": LLOYD, "algorithm": halfway}
    exec(result.snippet, names)
    assert not np.allclose(names["new"], names["trace"].centers[-1])
    assert capsys.readouterr().out == f"{names['trace'].centers[-1].numpy()}\n{names['new']}\n"


def test_decisions_of_rounding_are_not_differences():
    """Two points of a cluster are equally far from their mean; one of them is trimmed."""
    families = ("clustered", "uniform", "shifted", "scaled", "near")
    result = lf.check(recipes.trimmed(0.5), trimmed, n_problems=4, families=families)
    assert result, result
    assert sum(o.undecided for o in result.outcomes) > 0
    assert "layers in which rounding decides" in repr(result)


def test_an_object_need_not_say_its_decisions():
    plain = Trimmed("first", 0.5)

    class Silent:
        assign, weigh, place = plain.assign, plain.weigh, plain.place

    assert not hasattr(Silent(), "decision")
    assert lf.check(recipes.trimmed(0.5), Silent(), n_problems=2)


class Expanded(Soft):
    """Squared distances by the binomial formula, which rounds in another way."""

    def assign(self, points, centers):
        squares = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T
        exponents = -self.inverse_temperature * (squares + (centers**2).sum(axis=1))
        shares = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def weigh(self, points, centers, assignments, iteration):
        return assignments.T / assignments.T.sum(axis=1, keepdims=True)


def test_shares_that_rounding_changes_are_not_differences():
    """So cold that the last digits of the point between the centers decide its shares."""
    points = np.array([[3.3], [3.8 + 1e-13], [4.3]])
    cold = Expanded(1e13)
    trial = Trial(
        recipes.soft(1e13), as_algorithm(cold), Problem(points, points[[0, 2]], ""), n_layers=1
    )
    shares = lf.Circuit(trial.recipe, 1, 2)(points, points[[0, 2]], 1).assignments[0].numpy()
    assert np.abs(shares - cold.assign(points, points[[0, 2]])).max() > 1e-4
    outcome = compare_trial(trial)
    assert outcome.difference is None
    assert outcome.undecided > 0


@dataclass(frozen=True)
class CityBlock:
    """A score: minus the sum of absolute differences."""

    symbol = "ℓ1"

    def __call__(self, queries, keys):
        return -(queries.unsqueeze(-2) - keys.unsqueeze(-3)).abs().sum(dim=-1)


class CityBlockLloyd(Lloyd):
    def scores(self, points, centers):
        return -np.abs(points[:, None] - centers).sum(axis=2)

    def assign(self, points, centers):
        return np.eye(len(centers))[self.scores(points, centers).argmax(axis=1)]


@pytest.mark.long
def test_an_algorithm_may_have_scores_of_its_own():
    head = replace(LLOYD.encoder_cross, score=CityBlock())
    by_city_block = replace(LLOYD, name="city block", encoder_cross=head)
    assert lf.check(by_city_block, CityBlockLloyd(), n_problems=2)
    result = lf.check(by_city_block, Lloyd(), n_problems=2)
    assert result.difference.kind == "assignment"
    result = lf.check(LLOYD, CityBlockLloyd(), n_problems=2)
    assert "scores of the point to the centers: -" in repr(result)


def test_layers_after_a_center_that_is_not_a_number_are_left_out():
    def undefined(points, centers):  # 0/0 for an empty cluster
        assert np.isfinite(centers).all()  # it is not called again after that
        labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        return np.stack([points[labels == j].mean(axis=0) for j in range(len(centers))])

    result = lf.check(LLOYD, undefined, n_problems=1, families=("uniform", "empty"))
    assert result
    assert result.families["empty"]["undefined"] == 1
    assert "empty       nothing to compare" in repr(result)
    assert "layers in which the algorithm's centers are not numbers" in repr(result)
    with pytest.raises(ValueError, match="not numbers on any of the problems"):
        lf.check(LLOYD, undefined, n_problems=1, families="empty")


class Broken:
    """A score that fails, and one method of an algorithm."""

    symbol = "?"

    def __call__(self, queries, keys):
        raise RuntimeError("no idea")

    def assign(self, points, centers):
        return None


def wrong_shape(points, centers):
    return centers[0]


def fails(points, centers):
    return points[10_000]


WRONG = {
    "recipe: a maker": ((recipes.lloyd, None), "call it to make a recipe"),
    "recipe: a name": (("lloyd", None), "recipe: found 'lloyd'; pass a recipe"),
    "recipe: a schedule": (([LLOYD, LLOYD], None), "found 2 recipes; check them one at a time"),
    "recipe: learned": ((recipes.learned(), lloyd), "whose matrices are learned"),
    "recipe: it fails": (
        (replace(LLOYD, encoder_cross=replace(LLOYD.encoder_cross, score=Broken())), None),
        r"recipe: its circuit raised RuntimeError: no idea, for points of shape \(\d+, \d+\)",
    ),
    "algorithm: a class": ((LLOYD, Lloyd), r"found the class Lloyd; pass an instance of it, Lloyd"),
    "algorithm: a number": ((LLOYD, 3), "algorithm: found 3; pass a function step"),
    "algorithm: half of one": ((LLOYD, np.zeros(3)), "or an object with assign, weigh and place"),
    "algorithm: one parameter": ((LLOYD, lambda points: points), "a function of 1 parameters"),
    "algorithm: four": ((LLOYD, lambda a, b, c, d: a), "a function of 4 parameters"),
    "algorithm: wrong shape": (
        (LLOYD, wrong_shape),
        r"wrong_shape returned shape \(\d+,\); expect",
    ),
    "algorithm: it fails": ((LLOYD, fails), r"algorithm: fails raised IndexError: index 10000 is"),
    "algorithm: words": ((LLOYD, lambda p, c: "centers"), "raised ValueError: could not convert"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_arguments_say_what_to_pass(fault):
    (recipe, algorithm), complaint = WRONG[fault]
    with pytest.raises(ValueError, match=complaint):
        lf.check(recipe, algorithm, n_problems=1, families="clustered")


SETTINGS = {
    "no problems": ({"n_problems": 0}, "n_problems: found 0; pass an integer, 1 or more"),
    "no layers": ({"n_layers": 0}, "n_layers: found 0; pass an integer, 1 or more"),
    "a negative seed": ({"seed": -1}, "seed: found -1; pass an integer, 0 or more"),
    "an unknown family": (
        {"families": "round"},
        "families: found 'round'; 'lloyd' has clustered, ",
    ),
    "a family of unit vectors": ({"families": ["axes"]}, r"families: found \['axes'\]"),
    "no family": ({"families": ()}, r"families: found \(\); 'lloyd' has"),
}


@pytest.mark.parametrize("fault", SETTINGS)
def test_wrong_settings_say_what_to_pass(fault):
    settings, complaint = SETTINGS[fault]
    with pytest.raises(ValueError, match=complaint):
        lf.check(LLOYD, **settings)


def test_the_callback_counts_the_problems():
    calls = []
    lf.check(LLOYD, n_layers=1, callback=lambda *counts: calls.append(counts), **FEW)
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_a_shrunk_problem_that_the_algorithm_refuses_is_not_used():
    """An algorithm that needs two centers and four points."""
    wrong = replace(LLOYD, decoder_cross=replace(LLOYD.decoder_cross, value=-on(POSITION)))

    def particular(points, centers):
        if len(points) < 4 or len(centers) < 2:
            raise ValueError("too few")
        return lloyd(points, centers)

    problem = lf.check(wrong, particular, **FEW).smallest.trial.problem
    assert (len(problem.points), len(problem.centers)) == (4, 2)
