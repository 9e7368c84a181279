"""Columns of words, names of rows and missing values, from the fit to new rows."""

import builtins
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf

RNG = np.random.default_rng(0)
N = 90
TRUTH = np.arange(N) % 3
FRAME = pd.DataFrame({
    "customer": [f"C-{i:03}" for i in range(N)],
    "age": (np.array([20.0, 45.0, 70.0])[TRUTH] + RNG.normal(size=N)).round(3),
    "city": [["Rome", "Köln", "Oslo"][j] for j in TRUTH],
    "visits": np.array([5, 40, 75])[TRUTH] + RNG.integers(3, size=N),
})  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("people.csv", index=False)
    return tmp_path


OPTIONS = ("--one-hot", "city", "--id-column", "customer", "--scale", "standard")


def test_words_become_columns_of_0_and_1(command, here):
    assert command("fit", "people.csv", "-k", "3", *OPTIONS)[0] == 0
    centers = pd.read_csv("people-clusters/centers.csv")
    assert list(centers.columns) == [
        "cluster", "size", "age", "city=Köln", "city=Oslo", "city=Rome", "visits",
    ]  # fmt: skip
    model = lf.RelocatingKMeans.from_pretrained(here / "people-clusters" / "model")
    codes = np.stack([FRAME["city"] == c for c in ("Köln", "Oslo", "Rome")], axis=1)
    rows = np.column_stack([FRAME["age"], codes, FRAME["visits"]])
    own = pd.read_csv("people-clusters/labels.csv")
    assert np.array_equal(own["customer"], FRAME["customer"])
    blocks = lf.data.open_dataset(rows, scale="standard")
    assert np.array_equal(
        own["cluster"], lf.RelocatingKMeans(3, random_state=0).fit(blocks).labels_
    )
    assert np.allclose(
        model.cluster_centers_, [rows[own["cluster"] == j].mean(0) for j in range(3)]
    )


def test_new_rows_are_converted_as_in_the_fit(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    fitted = pd.read_csv("people-clusters/labels.csv")
    new = FRAME.sample(20, random_state=2)
    new[["visits", "city", "customer", "age"]].to_csv("new.csv", index=False, sep=";", decimal=",")
    status, _, err = command(
        "predict", "people-clusters", "new.csv", "--id-column", "customer", "-o", "new-labels.csv"
    )
    assert status == 0
    assert "recognised semicolons between values, decimal commas" in err
    found = pd.read_csv("new-labels.csv")
    assert np.array_equal(found["customer"], new["customer"])
    assert np.array_equal(found["cluster"], fitted["cluster"][new.index])
    assert np.allclose(found["distance"], fitted["distance"][new.index], rtol=1e-5)


def test_predict_knows_the_column_that_named_the_rows(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    new = FRAME.sample(20, random_state=2)
    new.to_csv("new.csv", index=False)
    status, _, err = command("predict", "people-clusters", "new.csv", "-o", "labels.csv")
    assert (status, "customer" in err) == (0, False)
    assert list(pd.read_csv("labels.csv")["customer"]) == list(new["customer"])
    new.assign(customer=None, other=range(20)).to_csv("other.csv", index=False)
    command("predict", "people-clusters", "other.csv", "--id-column", "other", "-o", "other-l.csv")
    assert list(pd.read_csv("other-l.csv")) == ["row", "other", "cluster", "distance"]
    new.drop(columns="customer").to_csv("unnamed.csv", index=False)
    status, _, err = command("predict", "people-clusters", "unnamed.csv", "-o", "unnamed-l.csv")
    assert status == 0
    assert "no column customer, which named the rows in the fit; the labels have row numbers" in err
    assert list(pd.read_csv("unnamed-l.csv")) == ["row", "cluster", "distance"]


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_a_model_of_plain_columns_knows_it_too(command, here, missing):
    """columns.json is written for it, and one of before, without it, is read."""
    numbers = FRAME[["customer", "age", "visits"]]
    numbers.to_csv("plain.csv", index=False)
    options = ("--id-column", "customer", "--missing", missing)
    assert command("fit", "plain.csv", "-k", "3", *options)[0] == 0
    assert command("predict", "plain-clusters", "plain.csv", "-o", "a.csv")[0] == 0
    assert list(pd.read_csv("a.csv")["customer"]) == list(FRAME["customer"])
    path = here / "plain-clusters" / "model" / "columns.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored.pop("id_column") == "customer"
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert command("predict", "plain-clusters", "plain.csv", "-o", "b.csv")[0] == 0
    assert list(pd.read_csv("b.csv")) == ["row", "cluster", "distance"]
    path.write_text(json.dumps(stored | {"id_column": 7}), encoding="utf-8")
    status, _, err = command("predict", "plain-clusters", "plain.csv", "-o", "c.csv")
    assert (status, "columns.json" in err, err.count("\n")) == (2, True, 1)


def test_names_of_rows_by_number(command, here):
    FRAME[["customer", "age", "visits"]].to_csv("bare.csv", index=False, header=False)
    options = ("--no-header", "--id-column", "1")
    assert command("fit", "bare.csv", "-k", "3", *options)[0] == 0
    assert command("predict", "bare-clusters", "bare.csv", "--no-header", "-o", "a.csv")[0] == 0
    assert list(pd.read_csv("a.csv")["1"]) == list(FRAME["customer"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("ids", [(), ("--id-column", "customer")])
def test_labels_may_carry_the_columns_of_the_data(command, here, kind, ids, monkeypatch):
    monkeypatch.setattr("lloydformer.app.jobs.fit.label_file._CHUNK", 64)
    frame = FRAME.assign(note=['said "no", then left', " ", None] * 30, distance=range(N))
    frame.loc[[0, 70], "age"] = np.nan
    frame.insert(0, "=cluster", np.arange(N) / 7)
    frame.to_csv("wide.csv", index=False)
    fit = ["fit", "wide.csv", "-k", "3", "--labels", kind, "--missing", "drop", "--keep-columns"]
    assert command(*fit, "--columns", "age,visits", *ids)[0] == 0
    found = (pd.read_csv if kind == "csv" else pd.read_parquet)(f"wide-clusters/labels.{kind}")
    kept = ["'=cluster", "age", "city", "visits", "note", "data distance"]
    names = ["customer", *kept] if ids else [kept[0], "customer", *kept[1:]]
    assert list(found) == ["row", *names, "cluster", "distance"]
    same = frame.rename(columns={"=cluster": "'=cluster", "distance": "data distance"})
    # The texts of the file, digit by digit: those of Parquet are texts, too.
    own = pd.read_csv("wide.csv", dtype=str, keep_default_na=False).set_axis(list(same), axis=1)
    texts = found[names].fillna("") if kind == "parquet" else own[names]
    pd.testing.assert_frame_equal(texts.astype(str), own[names].astype(str), check_dtype=False)
    if kind == "csv":
        read = pd.read_csv("wide-clusters/labels.csv", dtype=str, keep_default_na=False)
        pd.testing.assert_frame_equal(read[names], own[names])
    assert list(np.flatnonzero(found["cluster"].isna())) == [0, 70]


def test_predict_carries_the_columns_and_names_every_one_once(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    head, *rows = (here / "people.csv").read_text(encoding="utf-8").splitlines()
    text = "\n".join([f"{head},more,more,", *(f"{row},1,2,3" for row in rows)])
    (here / "new.csv").write_text(text, encoding="utf-8")
    status, _, _ = command("predict", "people-clusters", "new.csv", "--keep-columns", "-o", "l.csv")
    assert status == 0
    first, second = (here / "l.csv").read_text(encoding="utf-8").splitlines()[:2]
    assert first == ("row,customer,age,city,visits,more,more.1,column 7,cluster,distance")
    assert second.startswith(f"1,{rows[0]},1,2,3,")


def test_words_that_the_fit_did_not_see(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    new = FRAME.head(6).copy()
    new.loc[4, "city"] = "Lima"
    new.to_csv("new.csv", index=False)
    status, _, err = command("predict", "people-clusters", "new.csv")
    assert status == 2
    assert "line 6, column city: found a missing value, or one that is not Köln, Oslo, Rome" in err
    status, _, err = command("predict", "people-clusters", "new.csv", "--missing", "drop")
    assert status == 0
    assert "1 of 6 rows with missing values dropped (city lacks 1); their labels are empty" in err
    found = pd.read_csv("new-labels.csv")
    assert list(found["row"]) == [1, 2, 3, 4, 5, 6]
    assert list(found["cluster"].isna()) == [False, False, False, False, True, False]
    status, _, err = command(
        "predict", "people-clusters", "new.csv", "--missing", "median", "--force"
    )
    assert status == 2
    assert "this model has no medians; fit it with --missing median" in err


@pytest.mark.parametrize("lacking", ["age", "city"])
def test_a_fit_that_starts_from_a_model_without_medians(command, here, lacking):
    command("fit", "people.csv", "-k", "3", *OPTIONS, "-o", "first")
    new = FRAME.copy()
    new.loc[2, lacking] = None
    new.to_csv("new.csv", index=False)
    start = ("fit", "new.csv", "--start-from", "first", "--missing", "median")
    status, _, err = command(*start)
    assert status == 2
    assert f"the model has no medians to fill in missing values ({lacking} lacks 1)" in err
    assert "fit it with --missing median, or use --missing drop" in err
    # Without missing values no medians are needed.
    assert command("fit", "people.csv", *start[2:], "-o", "second")[0] == 0


def test_a_word_that_the_fit_did_not_see_is_not_filled_in(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS, "--missing", "median")
    new = FRAME.head(6).copy()
    new.loc[4, "city"] = "Lima"
    new.loc[2, "city"] = None
    new.to_csv("new.csv", index=False)
    status, _, err = command("predict", "people-clusters", "new.csv", "--missing", "median")
    assert status == 2
    assert "line 6, column city: found 'Lima', which the model does not know; it knows Köln" in err


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_no_thread_aborts_the_process_after_an_error(encoding, here):
    """Threads of pyarrow that called Python at the end of the process would."""
    rows = ["größe,b", *["1.5,2.5"] * 50, "1,2,3", *["1.5,2.5"] * 50_000]
    (here / "long.csv").write_text("\n".join(rows), encoding=encoding)
    call = [sys.executable, "-m", "lloydformer", "fit", "long.csv", "-k", "2"]
    for _ in range(10):
        assert subprocess.run(call, cwd=here, capture_output=True, check=False).returncode == 2


def test_all_columns_that_new_rows_lack_are_named(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    FRAME[["customer", "visits"]].to_csv("new.csv", index=False)
    status, _, err = command("predict", "people-clusters", "new.csv")
    assert status == 2
    assert "columns age, city are missing, and the model was fitted on them" in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("ids", [(), ("--id-column", "customer")])
def test_dropped_rows_keep_their_lines(command, here, kind, ids, monkeypatch):
    monkeypatch.setattr("lloydformer.app.jobs.fit.label_file._CHUNK", 16)
    gone = [0, 15, 16, 40, 89]
    frame = FRAME.copy()
    frame.loc[gone[:3], "age"] = np.nan
    frame.loc[gone[3:], "visits"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    options = ["--exclude", "city" if ids else "city,customer", "--missing", "drop", *ids]
    status, _, err = command("fit", "gaps.csv", "-k", "3", "--labels", kind, *options)
    assert status == 0
    assert "5 of 90 rows with missing values dropped (age lacks 3, visits lacks 2)" in err
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    found = read(f"gaps-clusters/labels.{kind}")
    assert list(found["row"]) == list(range(1, N + 1))
    assert list(np.flatnonzero(found["cluster"].isna())) == gone
    assert list(np.flatnonzero(found["distance"].isna())) == gone
    if ids:
        assert list(found["customer"]) == list(FRAME["customer"])
    kept = np.setdiff1d(np.arange(N), gone)
    whole = lf.data.open_dataset(FRAME.loc[kept, ["age", "visits"]].to_numpy())
    wanted = lf.KMeans(3, random_state=0).fit(whole).labels_
    assert np.array_equal(found["cluster"][kept], wanted)


def test_medians_of_the_fit_fill_new_rows(command, here):
    frame = FRAME.copy()
    frame.loc[[1, 2], "age"] = np.nan
    frame.loc[5, "city"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    options = ["--one-hot", "city", "--exclude", "customer", "--missing", "median"]
    assert command("fit", "gaps.csv", "-k", "3", "-o", "out", *options)[0] == 0
    stored = json.loads((here / "out" / "model" / "columns.json").read_text(encoding="utf-8"))
    fills = {f["column"]: f["fill"] for f in stored["features"]}
    assert fills["age"] == frame["age"].median()
    assert fills["city"] == frame["city"].mode()[0]
    FRAME.head(2).assign(age=[np.nan, fills["age"]], city="Oslo", visits=40).to_csv(
        "new.csv", index=False
    )
    assert command("predict", "out", "new.csv", "--missing", "error")[0] == 2
    assert command("predict", "out", "new.csv")[0] == 0
    found = pd.read_csv("new-labels.csv")
    assert found["distance"][0] == found["distance"][1]


def test_columns_take_the_place_of_those_of_the_fit(command, here):
    """With their medians, words and dates, so that `predict` asks nothing."""
    numbers = FRAME[["age", "visits"]]
    numbers.to_csv("numbers.csv", index=False)
    assert command("fit", "numbers.csv", "-k", "3", "-o", "out", "--missing", "median")[0] == 0
    new = numbers.head(6).copy()
    new.loc[2, "age"] = np.nan
    new.to_csv("new.csv", index=False, header=False)
    call = ("predict", "out", "new.csv", "--no-header", "--columns", "1,2")
    status, _, err = command(*call)
    assert status == 0, err
    new.fillna(numbers.median()).to_csv("filled.csv", index=False)
    assert command("predict", "out", "filled.csv", "-o", "wanted.csv")[0] == 0
    assert Path("new-labels.csv").read_text() == Path("wanted.csv").read_text()
    assert command(*call, "--missing", "drop", "--force")[0] == 0
    status, _, err = command(
        "predict", "out", "new.csv", "--no-header", "--columns", "1", "-o", "x.csv"
    )
    words = (
        "--columns: found 1 columns; this model was fitted on 2 (age, visits); name one for each"
    )
    assert (status, words in err) == (2, True), err
    dated = FRAME.assign(joined=[f"2024-03-{i % 28 + 1:02}" for i in range(len(FRAME))])
    dated = dated[["joined", "city", "age"]]
    dated.to_csv("dated.csv", index=False)
    options = ("--dates", "parts", "--one-hot", "city")
    assert command("fit", "dated.csv", "-k", "3", "-o", "d", *options)[0] == 0
    dated[["city", "age", "joined"]].to_csv("bare.csv", index=False, header=False)
    call = ("predict", "d", "bare.csv", "--no-header", "--columns", "3,1,2", "-o", "l.csv")
    status, _, err = command(*call)
    assert status == 0, err
    pd.testing.assert_frame_equal(pd.read_csv("l.csv"), pd.read_csv("d/labels.csv"))


def test_positions_are_kept_without_a_header(command, here):
    FRAME[["age", "city", "visits"]].to_csv("bare.csv", index=False, header=False)
    options = ["--columns", "3,1", "--no-header"]
    assert command("fit", "bare.csv", "-k", "3", *options)[0] == 0
    centers = pd.read_csv("bare-clusters/centers.csv")
    assert list(centers.columns) == ["cluster", "size", "x3", "x1"]
    assert command("predict", "bare-clusters", "bare.csv", "--no-header")[0] == 0
    first, second = (pd.read_csv(f) for f in ("bare-clusters/labels.csv", "bare-labels.csv"))
    assert first.equals(second)


def test_damaged_columns_of_a_model_are_refused(command, here):
    command("fit", "people.csv", "-k", "3", *OPTIONS)
    path = here / "people-clusters" / "model" / "columns.json"
    for text in ('{"format": 1}', "[]", '{"format": 1, "named": true, "features": []}'):
        path.write_text(text)
        status, _, err = command("predict", "people-clusters", "people.csv")
        assert (status, err.count("\n")) == (2, 1)
        assert "columns.json: " in err


def without(monkeypatch, *modules):
    """Make an import fail, as if these were not installed."""
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.split(".")[0] in modules:
            raise ImportError(name)
        return real(name, *rest, **more)

    for name in list(sys.modules):
        if name.split(".")[0] in modules:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)


def test_csv_files_need_no_other_package(command, here, monkeypatch):
    FRAME.to_parquet("people.parquet")
    command("fit", "people.csv", "-k", "3", *OPTIONS, "-o", "with")
    command("fit", "people.csv", "-k", "3", "--columns", "age,visits", "-o", "numbers")
    without(monkeypatch, "pyarrow", "openpyxl", "zstandard")
    assert command("fit", "people.csv", "-k", "3", *OPTIONS, "-o", "without")[0] == 0
    command("fit", "people.csv", "-k", "3", "--columns", "age,visits", "-o", "numbers2")
    for first, second in (("with", "without"), ("numbers", "numbers2")):
        for name in ("labels.csv", "centers.csv"):
            assert (here / first / name).read_text() == (here / second / name).read_text()
    (here / "p.xlsx").write_bytes(b"PK")
    (here / "p.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    for arguments, words in {
        "fit people.parquet -k 3": 'Arrow streams need pyarrow: pip install "lloydformer[data]"',
        "fit p.xlsx -k 3": 'Excel files need openpyxl: pip install "lloydformer[data]", or save',
        "fit p.csv.zst -k 3": ".zst files need pyarrow or zstandard",
        "fit people.csv -k 3 --labels parquet": "--labels: Parquet files need pyarrow",
    }.items():
        status, _, err = command(*arguments.split(), "-o", "new")
        assert (status, err.count("\n")) == (2, 1)
        assert words in err


@pytest.mark.parametrize("policy", ["ignore", "impute"])
def test_rows_with_missing_values_stay(command, here, policy):
    frame = FRAME[["age", "visits"]].assign(height=np.array([150.0, 170.0, 190.0])[TRUTH])
    frame = frame.astype(float)
    frame.loc[::4, "age"] = np.nan
    frame.loc[1::5, "visits"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    assert command("fit", "gaps.csv", "--missing", policy, "--report")[0] == 0
    fitted = pd.read_csv("gaps-clusters/labels.csv")
    assert fitted["cluster"].notna().all()
    assert len(set(zip(TRUTH, fitted["cluster"], strict=True))) == 3
    model = lf.RelocatingKMeans.from_pretrained(here / "gaps-clusters" / "model")
    assert model.missing == policy
    assert command("predict", "gaps-clusters", "gaps.csv", "-o", "again.csv")[0] == 0
    assert list(pd.read_csv("again.csv")["cluster"]) == list(fitted["cluster"])
    frame.iloc[17] = np.nan
    frame.to_csv("empty.csv", index=False)
    status, _, err = command("fit", "empty.csv", "-k", "3", "--missing", policy)
    assert (status, "empty.csv: found no value in row 17" in err) == (2, True)
    status, _, err = command(
        "fit", "gaps.csv", "-k", "3", "--missing", policy, "--algorithm", "soft"
    )
    assert (status, "--missing: soft does not have this option" in err) == (2, True)
