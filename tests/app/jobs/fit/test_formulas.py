"""Column names that are formulas: no spreadsheet runs them, and they are read back as they were."""

import csv
import json
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.app.jobs.fit.job import FitJob
from lloydformer.app.jobs.fit.outputs import notes_on_names, write_centers
from lloydformer.app.jobs.fit.settings import FitSettings, PredictSettings
from lloydformer.app.jobs.predict import label_rows
from lloydformer.data.csv_format import escape_formula, unescape_formula
from lloydformer.data.sources import open_file
from lloydformer.data.table_options import TableOptions
from lloydformer.estimators.base import Clusterer

FORMULAS = ["=cmd()", "+1", "-x", "@sum", "\tcmd", "\rcmd", "\ncmd", "＝cmd()"]
TEXTS = ["a", "a=b", "'a'", "1", "", " =x"]
NAMES = st.text("'=+-@\t\r\n＝ab, \"", max_size=6)


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_written_as_text(name):
    assert escape_formula(name) == f"'{name}"
    assert escape_formula(f"'{name}") == f"''{name}"


@pytest.mark.parametrize("name", TEXTS)
def test_other_names_are_written_as_they_are(name):
    assert escape_formula(name) == unescape_formula(name) == name


@given(NAMES)
def test_guarded_names_come_back_and_never_begin_a_formula(name):
    assert unescape_formula(escape_formula(name)) == name
    assert escape_formula(name)[:1] not in {formula[0] for formula in FORMULAS}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("centers") / "centers.csv"


def centers_of(columns):
    """What `write_centers` needs of a result."""
    centers = np.arange(2.0 * len(columns)).reshape(2, -1)
    return columns, [3, 4], Mock(Clusterer, cluster_centers_=centers)


@given(columns=st.lists(NAMES, min_size=1, max_size=4))
def test_the_names_of_centers_are_read_back(path, columns):
    """Except for spaces around a name, which are never read."""
    columns = [name if escape_formula(name) != name else name.strip() for name in columns]
    columns = [f"{name}x" if name[-1:].isspace() else name for name in columns]
    assume(len({"cluster", "size", *columns}) == len(columns) + 2)  # copies get numbers
    write_centers(path, *centers_of(columns))
    assert open_file(path, TableOptions()).names == ("cluster", "size", *columns)


def test_a_fit_with_formulas_as_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ["=cmd()", "b", "'@x", "\rc"]
    pd.DataFrame(rng.normal(size=(30, 4)), columns=names).to_parquet("p.parquet")
    job = FitJob(FitSettings(data="p.parquet", clusters="2", output=tmp_path / "out"))
    summary = job.write(job.fit(*job.read()))
    with (tmp_path / "out" / "centers.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["cluster", "size", "'=cmd()", "b", "''@x", "'\rc"]
    assert [row[1] for row in rows] == [str(size) for size in summary["sizes"]]
    (note,) = json.loads((tmp_path / "out" / "summary.json").read_text())["notes"]
    assert note.startswith("centers.csv: an apostrophe is written before the name '=cmd()' and 2 m")
    assert summary["columns"] == names

    again = lf.data.open_dataset("out/centers.csv")
    assert again.names == ("cluster", "size", *names)
    np.testing.assert_allclose(
        lf.data.open_dataset("out/centers.csv", columns=["'@x", "=cmd()"]).points,
        lf.RelocatingKMeans.from_pretrained("out/model").cluster_centers_[:, [2, 0]],
    )
    settings = PredictSettings(model=tmp_path / "out", data="out/centers.csv")
    clusters = label_rows(settings)[0]["clusters"].values()
    assert [cluster["size"] for cluster in clusters] == [1, 1]


def test_nothing_is_noted_of_ordinary_names():
    assert notes_on_names(["a", "b=c"]) == []
    (note,) = notes_on_names(["a", "\rb"])
    assert "the name '\\rb', so" in note
