"""Circuits in a file: what is saved is loaded, and a file runs no code without consent."""

import json
import sys
from dataclasses import dataclass, replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import lloydformer as lf
from lloydformer.circuits.gradients import NoGradientWarning

OWN = """
from dataclasses import dataclass
import torch

@dataclass(frozen=True)
class Manhattan:
    power: float = 1.0
    symbol = "L1"

    def __call__(self, queries, keys):
        return -(queries.unsqueeze(-2) - keys.unsqueeze(-3)).abs().pow(self.power).sum(dim=-1)
"""
POINTS = torch.tensor([[0.0, 0.0], [1.0, 0.5], [9.0, 9.0], [8.0, 9.5]], dtype=torch.float64)


@pytest.mark.parametrize("recipe", lf.recipes.table(), ids=lambda recipe: recipe.name)
def test_a_circuit_is_loaded_equal(recipe, tmp_path):
    circuit = lf.Circuit(recipe, n_features=2, n_clusters=2)
    circuit.save(tmp_path / "circuit.safetensors")
    again = lf.Circuit.load(tmp_path / "circuit.safetensors")
    assert again.schedule == circuit.schedule
    assert repr(again) == repr(circuit)
    points = POINTS / POINTS.norm(dim=1, keepdim=True).clamp(min=1) if recipe.norm else POINTS
    if recipe.norm:
        points[0] = torch.tensor([1.0, 0.0])
    first, second = (c(points, points[::2], 3, seed=1).centers for c in (circuit, again))
    assert torch.equal(first, second)
    assert [p.name for p in tmp_path.iterdir()] == ["circuit.safetensors"]


def test_trained_weights_are_loaded_in_their_precision(tmp_path):
    circuit = lf.Circuit(lf.recipes.learned("binary"), 2, 3, trainable=True, seed=7).double()
    circuit.save(tmp_path / "a.safetensors")
    again = lf.Circuit.load(tmp_path / "a.safetensors")
    pairs = list(zip(circuit.parameters(), again.parameters(), strict=True))
    assert len(pairs) == 24
    assert all(torch.equal(one, two) and two.requires_grad for one, two in pairs)


def test_loading_does_not_warn_again(tmp_path):
    with pytest.warns(NoGradientWarning):
        lf.Circuit(lf.recipes.lloyd(), 2, 2, trainable=True).save(tmp_path / "a.safetensors")
    assert lf.Circuit.load(tmp_path / "a.safetensors").layers[0].encoder_cross.query.requires_grad


def test_a_schedule_and_printed_layers_are_loaded(tmp_path):
    schedule = [lf.recipes.lloyd(), lf.recipes.trimmed(0.5)]
    circuit = lf.Circuit(schedule, 2, 2, as_in_paper=True)
    circuit.save(tmp_path / "a.safetensors")
    again = lf.Circuit.load(tmp_path / "a.safetensors")
    assert again.as_in_paper
    assert again.schedule == circuit.schedule


@pytest.fixture
def own_part(tmp_path, monkeypatch):
    """A circuit with a score of another module, in a file."""
    (tmp_path / "own_scores.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    from own_scores import Manhattan

    lloyd = lf.recipes.lloyd()
    head = replace(lloyd.encoder_cross, score=Manhattan(power=0.5))
    circuit = lf.Circuit(replace(lloyd, name="own", encoder_cross=head), 2, 2)
    circuit.save(tmp_path / "own.safetensors")
    yield circuit, tmp_path / "own.safetensors"
    sys.modules.pop("own_scores", None)


def test_a_part_of_ones_own_is_imported_with_consent_only(own_part):
    circuit, path = own_part
    del sys.modules["own_scores"]
    with pytest.raises(ValueError, match="'own_scores:Manhattan', which is code of another"):
        lf.Circuit.load(path)
    assert "own_scores" not in sys.modules
    again = lf.Circuit.load(path, allow=("own_scores:Manhattan",))
    assert again.schedule[0].encoder_cross.score.power == 0.5
    first, second = (c(POINTS, POINTS[::2], 3).centers for c in (circuit, again))
    assert torch.equal(first, second)


@dataclass(frozen=True)
class Inner:
    """A part that a reader could import only from this test."""

    symbol = "x"

    def __call__(self, queries, keys):
        return queries @ keys.mT


def test_a_part_that_cannot_be_imported_is_refused(tmp_path):
    @dataclass(frozen=True)
    class Local(Inner):
        pass

    lloyd = lf.recipes.lloyd()
    head = replace(lloyd.encoder_cross, score=Local())
    circuit = lf.Circuit(replace(lloyd, encoder_cross=head), 2, 2)
    with pytest.raises(ValueError, match=r"Local of .*, which a reader cannot import"):
        circuit.save(tmp_path / "a.safetensors")
    assert list(tmp_path.iterdir()) == []


def changed_header(path, change):
    """Write the file again with another header."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["lloydformer.circuit"])
    save_file(load_file(path), path, {"lloydformer.circuit": json.dumps(change(header))})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: {**h, "version": 9}, "header .* is not one of version 1"),
        (lambda h: {**h, "n_features": 3}, "weight 'layers.0.decoder_cross.key' has shape"),
        (lambda h: {**h, "n_features": "2"}, "n_features: found '2'"),
        (lambda h: {**h, "recipes": []}, "recipe: found"),
        (lambda h: {**h, "recipes": [{"import": "os:system"}]}, "found a part of 'os:system'"),
        (lambda h: {**h, "trainable": 1}, "found trainable 1"),
        (lambda h: [h], "header .* is not one of version 1"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, change, words):
    path = tmp_path / "a.safetensors"
    lf.Circuit(lf.recipes.lloyd(), 2, 2).save(path)
    changed_header(path, change)
    with pytest.raises(ValueError, match=words):
        lf.Circuit.load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"no weights")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        lf.Circuit.load(path)
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(ValueError, match="has weights but no circuit"):
        lf.Circuit.load(path)
    with pytest.raises(ValueError, match=r"use a name that ends in \.safetensors"):
        lf.Circuit(lf.recipes.lloyd(), 2, 2).save(tmp_path / "a.pt")
    with pytest.raises(ValueError, match="allow: found the text 'a:B'"):
        lf.Circuit.load(path, allow="a:B")


def test_a_class_that_is_no_part_is_refused(own_part):
    _, path = own_part

    def change(header):
        header["recipes"][0]["encoder_cross"]["score"] = {"import": "own_scores:torch"}
        return header

    changed_header(path, change)
    with pytest.raises(ValueError, match="'own_scores:torch', which is not a dataclass"):
        lf.Circuit.load(path, allow=("own_scores:torch",))
