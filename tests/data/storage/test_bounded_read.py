"""Files are read after a look at their kind and size: pipes, devices and huge files are refused."""

import json
import os
import sys
import tracemalloc

import pytest
from time_limit import time_limit

import lloydformer as lf
from lloydformer.app.cli import app
from lloydformer.app.jobs.bench import result as bench
from lloydformer.app.jobs.check import load_recipe
from lloydformer.data.storage import bounded_read
from lloydformer.data.storage.bounded_read import read_json, read_whole, tensor_limit
from lloydformer.estimators import Clusterer
from lloydformer.learning.pretrained import read_card
from lloydformer.paper import reproduce

READERS = {
    "a model": ("config.json", lambda path: Clusterer.from_pretrained(path.parent)),
    "a model to replace": (
        "config.json", lambda path: lf.KMeans(3).save_pretrained(path.parent, force=True),
    ),
    "a card": ("mine.json", read_card),
    "a recipe": ("recipe.json", lambda path: load_recipe(str(path))),
    "a benchmark": ("result.json", bench.load_result),
    "a result": ("comp-alg.json", lambda path: reproduce.load_result(path.parent, "comp-alg")),
    "points as CSV": ("points.csv", lf.data.open_dataset),
    "points as NPY": ("points.npy", lf.data.open_dataset),
    "points as NPZ": ("points.npz", lf.data.open_dataset),
    "points as Parquet": ("points.parquet", lf.data.open_dataset),
    "points in a folder": ("points.csv", lambda path: lf.data.open_dataset(path.parent)),
}  # fmt: skip
HUGE = 1 << 42
"""Bytes of a file that takes no room on the disk."""
JSON = [name for name, (file, _) in READERS.items() if file.endswith(".json")]


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def endless(path):
    path.touch()
    os.truncate(path, HUGE)


def deep(path):
    path.write_text('{"part": ' * 50_000 + "1" + "}" * 50_000)


def rather_deep(path):
    path.write_text('{"part": ' * 200 + "1" + "}" * 200)


@pytest.fixture(autouse=True)
def alarm():
    """A reader that waits for a pipe fails."""
    with time_limit(10, "the file was opened, or read to its end"):
        yield


def refused(name, path, words):
    with pytest.raises(ValueError, match=words) as error:
        READERS[name][1](path)
    assert path.name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("make", [pipe, device], ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", READERS)
def test_pipes_and_devices_are_refused(tmp_path, name, make):
    path = tmp_path / READERS[name][0]
    make(path)
    refused(name, path, "is a pipe")


@pytest.mark.parametrize("name", JSON)
def test_huge_files_are_refused_before_they_are_read(tmp_path, name):
    path = tmp_path / READERS[name][0]
    endless(path)
    refused(name, path, f"holds {HUGE:,} bytes; at most 67,108,864 are read")


@pytest.mark.parametrize("make", [deep, rather_deep], ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", JSON)
def test_deep_json_is_refused(tmp_path, name, make):
    path = tmp_path / READERS[name][0]
    make(path)
    refused(name, path, "is not JSON that can be read .more than 100 levels")


def test_huge_tensors_are_refused_before_they_are_read(tmp_path):
    model = lf.KMeans(2).fit([[0.0], [1.0], [5.0]])
    model.save_pretrained(tmp_path)
    (tensors,) = tmp_path.glob("*.safetensors")
    os.truncate(tensors, HUGE)
    with pytest.raises(ValueError, match=f"{tensors.name}: holds {HUGE:,} bytes"):
        lf.KMeans.from_pretrained(tmp_path)
    tensors.unlink()
    pipe(tensors)
    with pytest.raises(ValueError, match=f"{tensors.name}: is a pipe, a device or a folder"):
        lf.KMeans.from_pretrained(tmp_path)


def test_the_limit_of_tensors_is_within_the_memory():
    assert 1 << 26 < tensor_limit() < 1 << 50


def test_a_model_that_could_not_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("lloydformer.data.storage.model_folder.JSON_LIMIT", 500)
    with pytest.raises(ValueError, match=r"characters of settings and names, more than are read"):
        lf.KMeans(2).save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_sizes_and_levels_up_to_the_limits_are_read(tmp_path):
    path = tmp_path / "a.json"
    text = "[" * 100 + "]" * 100
    path.write_text(text)
    assert read_json(path) == json.loads(text)
    assert read_whole(path, 200) == text.encode()
    with pytest.raises(ValueError, match=r"a.json: holds 200 bytes; at most 199 are read"):
        read_whole(path, 199)
    path.write_text("[" * 101 + "]" * 101)
    with pytest.raises(ValueError, match="more than 100 levels"):
        read_json(path)


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "a").write_bytes(bytes(100))
    tracemalloc.start()
    assert read_whole(tmp_path / "a", 1 << 40) == bytes(100)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(bytes(300))
    small = os.stat_result((*os.stat(path)[:6], 100, *os.stat(path)[7:]))
    monkeypatch.setattr(bounded_read.os, "fstat", lambda descriptor: small)
    with pytest.raises(ValueError, match=r"a.json: grew while it was read"):
        read_whole(path, 200)


@pytest.mark.parametrize("arguments", [["reproduce", "comp-alg", "-o", "."], ["check", "r.json"]])
def test_deep_json_is_one_line_of_a_command(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    deep(tmp_path / "comp-alg.json")
    deep(tmp_path / "r.json")
    monkeypatch.setattr(app.gc, "freeze", lambda: None)
    monkeypatch.setattr(sys, "argv", ["lloydformer", *arguments])
    with pytest.raises(SystemExit) as ending:
        app.main()
    lines = capsys.readouterr().err.splitlines()
    assert ending.value.code == 2
    assert "more than 100 levels" in lines[-1]
    assert all("Traceback" not in line for line in lines)
