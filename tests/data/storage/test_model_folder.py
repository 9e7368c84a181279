"""A card and its weights belong together, also after several writes that were broken off."""

import os
from hashlib import sha256

import pytest

from lloydformer.data.storage import model_folder
from lloydformer.data.storage.model_folder import read_weights, write_card_and_weights

OLD, NEW = b"old weights", b"new weights"


def digest(weights):
    return sha256(weights).hexdigest()


def write(path, weights, notes=""):
    write_card_and_weights(path, f"{digest(weights)} {notes}", weights)


def read(path):
    """The weights that the card on the disk names."""
    named = path.with_name("mine.json").read_text().split()[0]
    return read_weights(path.parent, path.name, named)


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "mine", OLD)
    return tmp_path / "mine"


def break_off(*_):
    raise KeyboardInterrupt


def lose(handle):
    """As a kill before the bytes of a file are on the disk."""
    os.ftruncate(handle, 0)
    raise KeyboardInterrupt


def break_off_after_the_card(path, monkeypatch):
    """As a kill at this moment: the new card is there, its weights have their hidden name."""
    with monkeypatch.context() as patched:
        patched.setattr(type(path), "replace", _replace_once(type(path).replace))
        patched.setattr(type(path), "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            write(path, NEW)
    assert read(path) == NEW


def _replace_once(replace):
    """Rename the card, and nothing after it."""

    def renamed(self, target):
        if target.suffix != ".json":
            raise KeyboardInterrupt
        return replace(self, target)

    return renamed


def test_an_interrupt_after_the_card_keeps_its_weights(path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(model_folder, "remove_stale", break_off)
        with pytest.raises(KeyboardInterrupt):
            write(path, NEW)
    assert read(path) == NEW


@pytest.mark.parametrize("weights", [OLD, NEW])
def test_an_error_before_the_card_leaves_the_old_ones(path, monkeypatch, weights):
    with monkeypatch.context() as patched:
        patched.setattr(model_folder, "atomic_write_text", break_off)
        with pytest.raises(KeyboardInterrupt):
            write(path, weights)
    assert read(path) == OLD
    assert {file.name for file in path.parent.iterdir()} == {"mine.json", "mine.safetensors"}


def test_a_second_write_of_the_same_weights_can_be_broken_off(path, monkeypatch):
    break_off_after_the_card(path, monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(model_folder.os, "fsync", lose)
        with pytest.raises(KeyboardInterrupt):
            write(path, NEW, "again")
        assert read(path) == NEW
    write(path, NEW, "again")
    assert read(path) == NEW
    assert {file.name for file in path.parent.iterdir()} == {"mine.json", "mine.safetensors"}
