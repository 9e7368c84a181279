"""Files of version 0.1.0: a fit, a training before its end and after it, weights, recipes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.app.jobs.fit.settings import PredictSettings
from lloydformer.app.jobs.predict import label_rows
from lloydformer.circuits.serialise import deserialise
from lloydformer.learning import Run, Settings, Tasks, load_pretrained, train

FOLDER = Path(__file__).parent / "outputs_0_1"
SETTINGS = Settings(
    Tasks(2, 3, 12), n_steps=6, evaluate_every=1, n_validation=2, batch_size=2
)  # fmt: skip
RECIPES = json.loads((FOLDER / "recipes.json").read_text(encoding="utf-8"))["recipes"]


def test_a_fit_predicts_its_labels(tmp_path):
    data, path = str(FOLDER / "points.csv"), tmp_path / "labels.csv"
    label_rows(PredictSettings(model=FOLDER / "fit", data=data, output=path))
    before, now = (
        np.loadtxt(p, delimiter=",", skiprows=1) for p in (FOLDER / "fit/labels.csv", path)
    )
    np.testing.assert_array_equal(now[:, 1], before[:, 1])


def test_a_training_goes_on_to_the_same_weights(tmp_path):
    shutil.copytree(FOLDER / "half", tmp_path / "half")
    trained = train(SETTINGS, [Run(5)], device="cpu", folder=tmp_path / "half", resume=True)
    found = load_pretrained(FOLDER / "complete" / "d2-k3.json")
    assert torch.allclose(trained.weights, found.weights, rtol=1e-5, atol=1e-6)
    assert (found.settings, found.run) == (SETTINGS, Run(5))


@pytest.mark.parametrize("written", RECIPES, ids=lambda written: written["name"])
def test_a_recipe_is_the_one_of_today(written):
    more = {"robust_lifted": (0.3,)}.get(written["name"], ())
    assert deserialise(written["recipe"]) == getattr(lf.recipes, written["name"])(*more)
