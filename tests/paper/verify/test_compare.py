"""What a comparison of layers counts, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from lloydformer import algorithms
from lloydformer.algorithms.lloyd import Lloyd
from lloydformer.algorithms.robust import Medoids, Trimmed
from lloydformer.circuits import recipes
from lloydformer.paper.verify.compare import (
    Deviation,
    compare_layers,
    free_running,
    is_clear,
    layer_by_layer,
)
from lloydformer.paper.verify.problems import draw
from lloydformer.paper.verify.trials import Trial


class Undefined(Lloyd):
    """Lloyd's algorithm that leaves the new centers undefined."""

    def place(self, points, weights):
        return np.full((len(weights), points.shape[1]), np.nan)


@pytest.fixture
def trial() -> Trial:
    problem = draw(np.random.default_rng(0), "clustered", d=(2, 4))
    return Trial(recipes.lloyd(), Lloyd(), problem, n_layers=3)


def test_all_layers_of_a_trial_are_one_problem(trial):
    assert len(compare_layers(trial)) == 3
    assert layer_by_layer(trial).problems == 1


def test_a_trial_without_a_layer_to_compare_is_no_problem(trial):
    undefined = replace(trial, algorithm=Undefined())
    assert compare_layers(undefined) == []
    assert layer_by_layer(undefined) == Deviation(problems=0)


def test_initial_centers_that_are_not_numbers_leave_no_layer(trial):
    unknown = replace(trial.problem, centers=np.full_like(trial.problem.centers, np.nan))
    assert layer_by_layer(replace(trial, problem=unknown)) == Deviation(problems=0)


def test_a_recipe_of_several_stages_is_refused(trial):
    staged = replace(trial, recipe=recipes.relocating(1, 1))
    with pytest.raises(TypeError, match="use free_running"):
        layer_by_layer(staged)


def test_a_tie_that_rounding_decides_is_not_clear(trial):
    """Half of two points, equally far from their mean: both are kept, or either of them."""
    pair = np.array([[-0.1], [0.1]])
    problem = replace(trial.problem, points=pair, centers=np.zeros((1, 1)))
    for keep, clear in ((0.5, False), (1.0, True)):
        tied = Trial(recipes.trimmed(keep=keep), Trimmed(keep=keep), problem, n_layers=1)
        history = algorithms.run(tied.algorithm, pair, problem.centers, 1)
        assert is_clear(tied, history, 0) is clear


def test_centers_that_are_one_point_are_not_clear(trial):
    """Rounding decides which of two equal medoids is nearest."""
    start = np.repeat(trial.problem.points[:1], 2, axis=0)
    met = replace(trial, algorithm=Medoids(), problem=replace(trial.problem, centers=start))
    assert not is_clear(met, algorithms.run(met.algorithm, met.problem.points, start, 1), 0)


def test_a_run_that_differs_where_all_is_clear_is_a_difference(trial):
    other = replace(trial, algorithm=Undefined())
    assert not free_running(other).within(1.0)
