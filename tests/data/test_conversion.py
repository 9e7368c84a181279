"""Missing values in every kind of source, in memory and in scratch files, against pandas."""

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf
from lloydformer.data import conversion, csv_table, mapped_files, sources
from lloydformer.data.sources import open_table, rows_in_table
from lloydformer.data.table_options import TableOptions

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(50, 3)), columns=["a", "b", "c"])
FRAME = FRAME.mask(RNG.random((50, 3)) < 0.1)
KINDS = ["csv", "parquet", "npy", "frame", "folder"]


def source_of(kind, tmp_path):
    path = tmp_path / f"p.{kind}"
    if kind == "frame":
        return FRAME
    if kind == "folder":
        path.mkdir()
        for i in range(3):
            FRAME.iloc[20 * i : 20 * i + 20].to_csv(path / f"{i}.csv", index=False)
    if kind == "csv":
        FRAME.to_csv(path, index=False)
    if kind == "parquet":
        FRAME.to_parquet(path)
    if kind == "npy":
        np.save(path, FRAME.to_numpy())
    return path


@pytest.mark.parametrize("in_memory", [1 << 28, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_drop_and_median_are_those_of_pandas(tmp_path, monkeypatch, kind, in_memory):
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", in_memory)
    monkeypatch.setattr(sources, "ROWS", 7)
    monkeypatch.setattr(csv_table, "_ROWS", 7)
    source = source_of(kind, tmp_path)
    dropped = lf.data.open_dataset(source, missing="drop").points
    np.testing.assert_array_equal(dropped, FRAME.dropna())
    filled = lf.data.open_dataset(source, missing="median").points
    np.testing.assert_allclose(filled, FRAME.fillna(FRAME.median()), rtol=1e-15)


def test_the_given_array_is_not_changed():
    points = FRAME.to_numpy().copy()
    lf.data.open_dataset(points, missing="median")
    np.testing.assert_array_equal(points, FRAME.to_numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_missing_value_is_named(tmp_path, kind):
    row, column = np.argwhere(FRAME.isna().to_numpy())[0]
    words = {"csv": f"line {row + 2}", "folder": f"0.csv: line {row + 2}"}.get(
        kind, f"row {row + 1}"
    )
    name = f"number {column + 1}" if kind == "npy" else FRAME.columns[column]
    with pytest.raises(ValueError, match=f"{words}, column {name}: found a missing value"):
        lf.data.open_dataset(source_of(kind, tmp_path))


def test_dropped_rows_are_counted_from_the_beginning_of_the_file(tmp_path):
    found = open_table(str(source_of("csv", tmp_path)), TableOptions(missing="drop"))
    gone = np.flatnonzero(FRAME.isna().any(axis=1))
    np.testing.assert_array_equal(found.dropped, gone)
    kept = np.setdiff1d(np.arange(50), gone)
    np.testing.assert_array_equal(rows_in_table(np.arange(len(kept)), found.dropped), kept)


@pytest.mark.parametrize("policy", ["error", "drop", "median"])
def test_infinite_values_are_not_missing(tmp_path, policy):
    (tmp_path / "p.csv").write_text("a,b\n,inf\n\n1,2\n3,-inf\n")
    place = "line 2" if policy != "drop" else "line 5"  # the first one is dropped
    with pytest.raises(
        ValueError, match=rf"{place}, column b: found -?inf; correct infinite values"
    ):
        lf.data.open_dataset(tmp_path / "p.csv", missing=policy)


def test_a_mapped_array_is_read_once_and_stays_where_it_is(tmp_path, monkeypatch):
    np.save(tmp_path / "p.npy", np.zeros((50, 3)))
    passes = []
    real = np.isfinite
    monkeypatch.setattr(
        conversion.np, "isfinite", lambda part: passes.append(len(part)) or real(part)
    )
    assert lf.data.open_dataset(tmp_path / "p.npy").mapped
    assert sum(passes) == 50


def test_words_among_numbers_are_refused_in_the_words_of_python(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n1,x\n2,x\n3,y\n")
    with pytest.raises(
        ValueError, match=r"b is not numeric .*; use columns=\('a',\), numeric_only=T"
    ):
        lf.data.open_dataset(tmp_path / "p.csv")
    assert lf.data.open_dataset(tmp_path / "p.csv", numeric_only=True).names == ("a",)
    assert lf.data.open_dataset(tmp_path / "p.csv", one_hot=["b"]).names == ("a", "b=y")
    assert lf.data.open_dataset(tmp_path / "p.csv", exclude=["b"]).points.tolist() == [
        [1],
        [2],
        [3],
    ]


def test_a_column_that_is_coded_twice_is_refused(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(ValueError, match=r"p\.csv: column b appears twice"):
        lf.data.open_dataset(tmp_path / "p.csv", one_hot=["b", "b"])


def test_a_word_after_many_numbers_makes_a_column_of_words(tmp_path, monkeypatch):
    rows = "\n".join(f"{i},{i if i < 4000 else 'x'}" for i in range(5000))
    (tmp_path / "p.csv").write_text(f"a,b\n{rows}\n")
    assert lf.data.open_dataset(tmp_path / "p.csv", numeric_only=True).names == ("a",)
