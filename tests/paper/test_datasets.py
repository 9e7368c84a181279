"""The paper's data sets come from a folder or from OpenML, or raise a clear error."""

import numpy as np
import pytest

from lloydformer.data.blocks import TensorBlocks
from lloydformer.paper import datasets
from lloydformer.paper.datasets import OPENML, load_scaled_points
from lloydformer.paper.paper_numbers import row_names


def test_columns_of_a_set_in_the_folder_are_scaled(tmp_path, monkeypatch):
    np.savez(tmp_path / "sonar.npz", X=np.array([[1, 7, -2], [3, 7, 2], [2, 7, 1]]), y=[0, 1, 0])
    monkeypatch.setenv("LLOYDFORMER_DATA", str(tmp_path))
    assert load_scaled_points("sonar").tolist() == [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.75]]


def test_numbers_that_look_like_missing_values_are_values(tmp_path, monkeypatch):
    """ada-agnostic has 999 among values of at most 413; the paper's sets are taken as they are."""
    X = np.random.default_rng(0).uniform(0, 400, size=(300, 2))
    X[:30, 0] = 999
    np.savez(tmp_path / "ada-agnostic.npz", X=X)
    monkeypatch.setenv("LLOYDFORMER_DATA", str(tmp_path))
    found = load_scaled_points("ada-agnostic")[:, 0]
    assert (found[:30] == 1).all()
    assert (found[30:] < 400 / 999).all()


def test_a_set_that_is_not_in_the_folder_is_downloaded_by_number(tmp_path, monkeypatch):
    asked: list[str] = []

    def answer(source: str, **options: str) -> TensorBlocks:
        asked.append(source)
        raise ValueError("the network is away")

    monkeypatch.setenv("LLOYDFORMER_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "open_points", answer)
    with pytest.raises(ValueError, match=r"pc3: .*the network is away.*LLOYDFORMER_DATA .*pc3.npz"):
        load_scaled_points("pc3")
    assert asked == ["openml:1050"]


def test_unavailable_and_unknown_sets_raise_with_the_repair(monkeypatch):
    monkeypatch.delenv("LLOYDFORMER_DATA", raising=False)
    with pytest.raises(ValueError, match=r"ringnorm-zscored: .*set LLOYDFORMER_DATA to a folder"):
        load_scaled_points("ringnorm-zscored")
    with pytest.raises(ValueError, match="name: found 'iris'; pass one of gina-agnostic"):
        load_scaled_points("iris")


def test_every_set_of_the_three_tables_is_known():
    wanted = {name for t in ("openml-trf", "rob-res", "med-res") for name in row_names(t)}
    assert wanted == set(OPENML)
