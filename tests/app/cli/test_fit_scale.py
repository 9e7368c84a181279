"""`--scale` from the fit to new rows: skewed columns, words, notes, and what is kept."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.app.jobs.fit.settings import SCALES

RNG = np.random.default_rng(0)
LABELS = np.arange(900) % 3
# Three segments of customers: lognormal in each column.
MIDDLES = np.array([[3, 1, 0], [5, 2.5, 1], [7, 4, 2.5]])
SEGMENTS = pd.DataFrame(
    np.exp(MIDDLES[LABELS] + 0.4 * RNG.normal(size=(900, 3))), columns=["income", "spend", "visits"]
)
CORNERS = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
PEOPLE = pd.DataFrame(CORNERS[LABELS] + RNG.normal(size=(900, 2)), columns=["a", "b"]).assign(
    city=RNG.choice(list("ABCDEFGHIJ"), 900), smoker=RNG.choice(["no", "yes"], 900)
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SEGMENTS.to_csv("segments.csv", index=False)
    PEOPLE.to_csv("people.csv", index=False)
    return tmp_path


def agreement(folder):
    return adjusted_rand_score(LABELS, pd.read_csv(f"{folder}/labels.csv")["cluster"])


def test_lognormal_segments_are_found_without_an_option(command, here):
    status, out, _ = command("fit", "segments.csv", "-k", "2:8", "--json")
    summary = json.loads(out)
    assert (status, summary["k"], summary["advice"]) == (0, 3, [])
    assert agreement("segments-clusters") >= 0.99
    line = "scaled: logarithms of income, spend and visits; --scale none leaves columns as they are"
    assert summary["notes"] == [line]
    assert summary["scale"] == "auto"
    assert summary["scales"]["income"]["method"] == "log"
    # In the units of the data: near the medians of lognormals.
    centers = pd.read_csv("segments-clusters/centers.csv").sort_values("income")
    expected = np.exp(MIDDLES)
    np.testing.assert_allclose(centers[["income", "spend", "visits"]], expected, rtol=0.1)


def test_a_note_names_the_scales(command, here):
    status, _, err = command("fit", "segments.csv", "-k", "3")
    assert (status, err.count("note: scaled: logarithms of income, spend and visits")) == (0, 1)


def test_without_scaling_they_are_not(command, here):
    summary = json.loads(
        command("fit", "segments.csv", "-k", "2:8", "--scale", "none", "--json")[1]
    )
    assert agreement("segments-clusters") < 0.7
    assert "--scale auto" in summary["advice"][0]
    assert summary["scales"] == {}
    model = lf.RelocatingKMeans.from_pretrained(here / "segments-clusters" / "model")
    assert model.scaling is None


@pytest.mark.parametrize("method", SCALES)
def test_new_rows_are_scaled_as_in_the_fit(command, here, method):
    assert command("fit", "segments.csv", "-k", "3", "--scale", method)[0] == 0
    labels = pd.read_csv("segments-clusters/labels.csv")
    rows = SEGMENTS.iloc[::-7]
    rows.to_csv("new.csv", index=False)
    assert command("predict", "segments-clusters", "new.csv")[0] == 0
    found = pd.read_csv("new-labels.csv")
    assert np.array_equal(found["cluster"], labels["cluster"][rows.index])
    np.testing.assert_allclose(found["distance"], labels["distance"][rows.index], rtol=1e-9)
    model = lf.RelocatingKMeans.from_pretrained(here / "segments-clusters" / "model")
    assert np.array_equal(model.predict(SEGMENTS), labels["cluster"])


def test_an_outlier_does_not_hide_clear_clusters(command, here):
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 3
    points = np.array([[0, 0], [9, 0], [0, 9]])[truth] + rng.normal(size=(400, 2))
    points[7] = 100
    pd.DataFrame(points, columns=["a", "b"]).to_csv("points.csv", index=False)
    status, out, err = command("fit", "points.csv")
    assert status == 0
    assert "outliers moved to limits near the other values: a and b" in err
    labels = pd.read_csv("points-clusters/labels.csv")["cluster"]
    inside = np.arange(400) != 7
    assert adjusted_rand_score(truth[inside], labels[inside]) > 0.98
    assert "Clear evidence of clusters" in out


def test_random_words_do_not_hide_numbers(command, here):
    words = ("--one-hot", "city,smoker", "--algorithm", "relocating")
    status, _, err = command("fit", "people.csv", "-k", "3", *words)
    assert status == 0
    assert agreement("people-clusters") == 1.0
    assert "words weighed as one column: city=A, city=B, " in err
    centers = pd.read_csv("people-clusters/centers.csv")
    assert list(centers.columns[-2:]) == ["city=J", "smoker=yes"]
    command("fit", "people.csv", "-k", "3", *words, "--scale", "standard", "--force")
    assert agreement("people-clusters") < 0.7


def test_one_column_for_two_words(command, here):
    people = PEOPLE.assign(smoker=np.where(LABELS == 1, "no", "yes"))
    people.loc[5, "smoker"] = None
    people.to_csv("people.csv", index=False)
    options = ("--one-hot", "smoker", "--exclude", "city", "--missing", "median")
    assert command("fit", "people.csv", "-k", "3", "--report", *options)[0] == 0
    page = (here / "people-clusters" / "report.html").read_text(encoding="utf-8")
    assert "smoker is no in 100% of its rows (33% of all)" in page
    columns = json.loads((here / "people-clusters" / "model" / "columns.json").read_text())
    assert columns["features"][2]["fill"] == "yes"
    people.rename(columns={"smoker": "smoker"}).iloc[:30].to_csv("new.csv", index=False)
    assert command("predict", "people-clusters", "new.csv")[0] == 0
    labels = pd.read_csv("people-clusters/labels.csv")["cluster"]
    assert np.array_equal(pd.read_csv("new-labels.csv")["cluster"], labels[:30])


def test_two_columns_of_an_older_model_stay_two(command, here):
    options = ("--one-hot", "smoker", "--exclude", "city", "--scale", "none")
    command("fit", "people.csv", "-k", "3", *options)
    path = here / "people-clusters" / "model" / "columns.json"
    columns = json.loads(path.read_text())
    del columns["features"][2]["is_single"]
    path.write_text(json.dumps(columns))
    codes = np.stack([PEOPLE["smoker"] == word for word in ("no", "yes")], axis=1)
    rows = pd.DataFrame(
        np.column_stack([PEOPLE[["a", "b"]], codes]).astype(float),
        columns=["a", "b", "smoker=no", "smoker=yes"],
    )
    model = lf.RelocatingKMeans(3, random_state=0).fit(rows)
    model.save_pretrained(here / "people-clusters" / "model", force=True)
    assert command("predict", "people-clusters", "people.csv")[0] == 0
    found = pd.read_csv("people-labels.csv")["cluster"]
    assert np.array_equal(found, model.labels_)


def test_coordinates_are_left_alone(command, here):
    PEOPLE[["a", "b"]].to_csv("points.csv", index=False)
    status, out, _ = command("fit", "points.csv", "-k", "3", "--json")
    summary = json.loads(out)
    assert (status, summary["notes"]) == (0, [])
    reason = "spreads differ by a factor of 1 only"
    assert summary["scales"]["a"] == {"method": "none", "reason": reason}
    model = lf.RelocatingKMeans.from_pretrained(here / "points-clusters" / "model")
    assert model.scaling is None


def test_a_start_from_a_model_has_its_scaling(command, here):
    command("fit", "segments.csv", "-k", "3", "-o", "first")
    again = ("--start-from", "first", "--algorithm", "kmeans", "--json")
    status, out, _ = command("fit", "segments.csv", *again)
    assert (status, json.loads(out)["n_iter"], json.loads(out)["scale"]) == (0, 1, "model")
    one = lf.RelocatingKMeans.from_pretrained(here / "first" / "model")
    two = lf.KMeans.from_pretrained(here / "segments-clusters" / "model")
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-9)
    assert two.scaling.curves is not None


def test_directions_are_not_scaled(command, here):
    status, out, _ = command("fit", "segments.csv", "-k", "3", "--algorithm", "spherical", "--json")
    assert (status, json.loads(out)["scale"]) == (0, "none")


def test_infinite_values_have_a_repair_that_helps(command, here):
    rows = SEGMENTS.copy()
    rows.loc[4, "spend"] = np.inf
    rows.to_csv("infinite.csv", index=False)
    status, _, err = command("fit", "infinite.csv", "-k", "3", "--missing", "drop")
    assert status == 2
    assert "column spend: found inf; correct infinite values in the file" in err
    assert "--exclude spend" in err
    assert command("fit", "infinite.csv", "-k", "3", "--exclude", "spend")[0] == 0


def test_the_report_names_the_scales(command, here):
    command("fit", "segments.csv", "-k", "3", "--report")
    page = (here / "segments-clusters" / "report.html").read_text(encoding="utf-8")
    assert "auto (logarithms of income, spend and visits)" in page
