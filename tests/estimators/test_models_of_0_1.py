"""Model folders that version 0.1.0 wrote: they load, predict the same labels and save again."""

import json
from pathlib import Path

import numpy as np
import pytest

from lloydformer.estimators import Clusterer

FOLDER = Path(__file__).parent / "models_0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def test_there_is_one_folder_for_each_estimator():
    assert len(EXPECTED["models"]) == 10
    assert {folder.name for folder in FOLDER.iterdir() if folder.is_dir()} == set(
        EXPECTED["models"]
    )


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_it_loads_and_predicts_as_it_did(name, tmp_path):
    expected = EXPECTED["models"][name]
    model = Clusterer.from_pretrained(FOLDER / name)
    points = np.array(EXPECTED["points"], dtype=model.cluster_centers_.dtype)
    assert type(model).__name__ == expected["class"]
    np.testing.assert_array_equal(model.cluster_centers_, expected["centers"])
    np.testing.assert_array_equal(model.predict(points), expected["labels"])
    assert model.inertia_ == expected["inertia"]
    model.save_pretrained(tmp_path / "again")
    again = type(model).from_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(again.predict(points), expected["labels"])
    assert again.get_params().keys() == model.get_params().keys()
