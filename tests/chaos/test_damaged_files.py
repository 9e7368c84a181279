"""Files with random damage: each is read, or refused by a ValueError of one line."""

import bz2
import gzip
import json
import lzma
import random
import shutil

import numpy as np
import pandas as pd
import pyarrow
import pytest

import lloydformer as lf
from lloydformer.app.jobs.check import load_recipe
from lloydformer.circuits.serialise import serialise
from lloydformer.estimators import Clusterer
from lloydformer.learning.pretrained import weights_folder

X = np.random.default_rng(0).normal(size=(40, 3))


def make_csv(path):
    path.write_text(pd.DataFrame(X, columns=["a", "b", '"c, d"']).to_csv(index=False))


def make_packed(pack):
    def make(path):
        make_csv(path)
        path.write_bytes(pack(path.read_bytes()))

    return make


def make_model(path):
    data = lf.data.open_dataset(pd.DataFrame(X, columns=["a", "b", "c"]), scale="minmax")
    lf.TrimmedKMeans(3, random_state=0).fit(data).save_pretrained(path.parent)


def make_card(path):
    for ending in (".json", ".safetensors"):
        shutil.copy(str(weights_folder() / f"d4-k6{ending}"), path.with_suffix(ending))


def read_model(path):
    Clusterer.from_pretrained(path.parent)


FILES = {
    "points.csv": (make_csv, lf.data.open_dataset),
    "points.csv.gz": (make_packed(gzip.compress), lf.data.open_dataset),
    "points.csv.bz2": (make_packed(bz2.compress), lf.data.open_dataset),
    "points.csv.xz": (make_packed(lzma.compress), lf.data.open_dataset),
    "points.csv.zst": (
        make_packed(lambda text: pyarrow.compress(text, "zstd", asbytes=True)),
        lf.data.open_dataset,
    ),
    "points.npy": (lambda path: np.save(path, X), lf.data.open_dataset),
    "points.npz": (lambda path: np.savez_compressed(path, X=X, y=X[:, 0]), lf.data.open_dataset),
    "points.parquet": (
        lambda path: pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(path),
        lf.data.open_dataset,
    ),
    "config.json": (make_model, read_model),
    "mine.json": (make_card, lf.learning.load_pretrained),
    "mine.safetensors": (make_card, lf.learning.load_pretrained),
    "recipe.json": (
        lambda path: path.write_text(json.dumps(serialise(lf.recipes.robust(0.2)))),
        lambda path: load_recipe(str(path)),
    ),
}  # fmt: skip


def damaged(data, rng):
    """Change, remove, repeat or insert some bytes; JSON also gets other numbers."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(data) + 1)
        stop = min(len(data), start + rng.choice([1, 1, 2, 8, 100]))
        new = rng.choice([
            b"", bytes(data[start:stop]) * 2, rng.randbytes(stop - start), b"9" * 25, b"-1", b"[[",
            b"null", b'""', b"\xff" * 8, b"1e999", b"\x00\x00",
        ])  # fmt: skip
        data[start:stop] = new
    return bytes(data)


def complaint(read, path):
    """The words with which a file is refused; empty if it is read."""
    try:
        read(path)
    except ValueError as error:
        return str(error)
    except Exception as error:
        pytest.fail(f"{type(error).__name__}: {error} for {path.read_bytes()!r}"[:3000])
    return ""


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_refused(tmp_path, name, amount):
    make, read = FILES[name]
    path, rng = tmp_path / name, random.Random(name)
    make(path)
    assert complaint(read, path) == ""
    whole, found = path.read_bytes(), []
    for _ in range(amount(40, 4000)):
        path.write_bytes(damaged(whole, rng))
        found.append(complaint(read, path))
        assert "\n" not in found[-1]
        assert str(tmp_path) in found[-1] or not found[-1]
    assert any(found)
