"""Files of points: values are read as written, and errors are one line."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import lloydformer as lf
from lloydformer.data import mapped_files, typed_tables
from lloydformer.data.column_statistics import fit_scaling

X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 1000.0] + 5
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def written(path, kind):
    match kind:
        case "csv":
            FRAME.to_csv(path, index=False)
        case "bare.csv":
            FRAME.to_csv(path, index=False, header=False)
        case "tsv":
            FRAME.to_csv(path, index=False, sep="\t")
        case "parquet":
            FRAME.to_parquet(path, row_group_size=7)
        case "npy":
            np.save(path, X)
        case "npz":
            np.savez(path, X=X, y=np.arange(50))
    return path


@pytest.mark.parametrize("kind", ["csv", "bare.csv", "tsv", "parquet", "npy", "npz"])
def test_every_kind_of_file(tmp_path, kind):
    blocks = lf.data.open_dataset(written(tmp_path / f"points.{kind}", kind))
    assert np.array_equal(blocks.points.numpy(), X)
    named = kind in ("csv", "tsv", "parquet")
    assert blocks.names == (("a", "b", "c") if named else None)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_folder_is_its_files_in_order(tmp_path, kind):
    for i in range(3):
        written(tmp_path / f"part-{i}.{kind}", kind)
    assert np.array_equal(lf.data.open_dataset(tmp_path).points.numpy(), np.concatenate([X, X, X]))


def test_large_tables_are_copied_to_a_scratch_file(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", 500)
    blocks = lf.data.open_dataset(written(tmp_path / "p.parquet", "parquet"))
    assert blocks.mapped
    assert np.array_equal(blocks.points, X)


def test_a_parquet_file_that_no_disk_holds_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """Equal rows take next to no room in such a file."""
    path = written(tmp_path / "p.parquet", "parquet")
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", 500)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=500))
    with pytest.raises(ValueError, match=r"no room for a scratch file of .*; set TMPDIR to a fold"):
        lf.data.open_dataset(path)
    monkeypatch.setattr(
        mapped_files.shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000)
    )
    assert lf.data.open_dataset(path).mapped


def test_a_parquet_file_is_read_in_batches_of_few_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(typed_tables, "_NUMBERS", 20)
    read = []
    stack = typed_tables.stack_columns

    def seen(columns, n_rows):
        read.append(len(columns) * n_rows)
        return stack(columns, n_rows)

    monkeypatch.setattr(typed_tables, "stack_columns", seen)
    assert np.array_equal(
        lf.data.open_dataset(written(tmp_path / "p.parquet", "parquet")).points, X
    )
    assert max(read) <= 20


def test_columns_by_name_and_by_number(tmp_path):
    named = lf.data.open_dataset(written(tmp_path / "p.csv", "csv"), columns=["c", "a"])
    counted = lf.data.open_dataset(written(tmp_path / "p.npy", "npy"), columns=["3", "1"])
    assert np.array_equal(named.points.numpy(), X[:, [2, 0]])
    assert np.array_equal(counted.points.numpy(), X[:, [2, 0]])


def test_names_are_looked_up_in_lloydformer_data(tmp_path, monkeypatch):
    written(tmp_path / "iris.npz", "npz")
    monkeypatch.setenv("LLOYDFORMER_DATA", str(tmp_path))
    assert np.array_equal(lf.data.open_dataset("iris").points.numpy(), X)


WRONG = {
    "empty.csv": ("", "the file is empty"),
    "head.csv": ("a,b\n", "points are rows of numbers"),
    "ragged.csv": ("1,2\n3,4\n5\n", "same number of columns"),
    "text.csv": ("a,b\n1,2\nx,4\n", "column a.*'x'.*choose columns"),
    "missing.csv": ("a,b\n1,2\n,4\n", "line 3, column a: found a missing"),
    "infinite.csv": ("a,b\n1,2\n3,inf\n", "line 3, column b: found inf"),
    "cut.parquet": ("PAR1junk", "not a readable Parquet file"),
    "cut.npy": ("junk", "not a readable .npy"),
    "cut.npz": ("junk", "not a readable .npz"),
    "points.xyz": ("1", "files are not supported"),
}


@pytest.mark.parametrize("name", WRONG)
def test_unreadable_files_are_refused(tmp_path, name):
    text, words = WRONG[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        lf.data.open_dataset(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_paths_columns_and_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        lf.data.open_dataset(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match=r"no \.csv"):
        lf.data.open_dataset(tmp_path)
    with pytest.raises(ValueError, match="'z'; there are a, b, c"):
        lf.data.open_dataset(written(tmp_path / "p.csv", "csv"), columns=["z"])
    (tmp_path / "q.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"q.csv: its columns differ"):
        lf.data.open_dataset(tmp_path)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_scaling_is_undone_on_the_centers(tmp_path, scale):
    blocks = lf.data.open_dataset(written(tmp_path / "p.npy", "npy"), scale=scale)
    scaled = fit_scaling(torch.tensor(X), scale).apply(torch.tensor(X)).numpy()
    model = lf.KMeans(4, random_state=0).fit(blocks)
    alone = lf.KMeans(4, random_state=0).fit(scaled)
    assert model.inertia_ == pytest.approx(alone.inertia_, rel=1e-9)
    means = [X[model.labels_ == j].mean(axis=0) for j in range(4)]
    assert np.allclose(model.cluster_centers_, means)
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict(blocks), model.labels_)


def test_names_are_kept_and_compared(tmp_path):
    blocks = lf.data.open_dataset(written(tmp_path / "p.csv", "csv"))
    model = lf.KMeans(3, random_state=0).fit(blocks)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    other = lf.data.open_dataset(tmp_path / "p.csv", columns=["b", "a", "c"])
    with pytest.raises(ValueError, match="columns"):
        model.predict(other)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_a_spread_that_overflows_is_refused(scale):
    with pytest.raises(ValueError, match="scale: found values in column number 2 whose spread"):
        lf.data.open_dataset(
            np.column_stack([X[:, 0], 1.7e308 * np.sign(X[:, 1] - 1)]), scale=scale
        )


def test_a_spread_that_underflows_is_refused_in_fit():
    tiny = lf.data.open_dataset(X * 1e-300, scale="standard")
    with pytest.raises(ValueError, match="X: found values that span"):
        lf.KMeans(3).fit(tiny)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_a_constant_column_becomes_0(scale):
    points = np.column_stack([X[:, 0], np.full(len(X), 0.1)])
    scaling = lf.data.open_dataset(points, scale=scale).scaling
    assert scaling.apply(torch.tensor(points))[:, 1].tolist() == [0.0] * len(X)
    assert scaling.scale[1] == 1.0
