"""What a comparison of layers counts, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from lloydformer.algorithms.lloyd import Lloyd
from lloydformer.circuits import recipes
from lloydformer.paper.verify.compare import Deviation, compare_layers, layer_by_layer
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
