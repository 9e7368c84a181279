"""`lloydformer fit --algorithm mixture`: a mixture from the file to its folder and back."""

import json

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with stretched clusters in points.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2)) * [5.0, 0.5] + (np.arange(300) % 3)[:, None] * [4.0, 4.0]
    pd.DataFrame(rows, columns=["long", "short"]).to_csv("points.csv", index=False)
    return tmp_path


def test_bic_chooses_the_number_of_components(command, here):
    options = ("--algorithm", "mixture", "--select", "bic", "--n-init", "3", "--scale", "none")
    status, out, _ = command("fit", "points.csv", "-k", "2:4", *options)
    assert status == 0
    assert "k 3 has the best bic" in out
    summary = json.loads((here / "points-clusters" / "summary.json").read_text())
    scores = {k: row["bic"] for k, row in summary["rows"].items()}
    assert min(scores, key=scores.get) == "3"
    model = lf.GaussianMixture.from_pretrained(here / "points-clusters" / "model")
    frame = pd.read_csv("points.csv")
    labels = pd.read_csv("points-clusters/labels.csv")
    assert model.predict(frame).tolist() == labels["cluster"].tolist()
    assert model.bic(frame) == pytest.approx(scores["3"])
    assert command("predict", "points-clusters", "points.csv", "-o", "new.csv")[0] == 0
    assert pd.read_csv("new.csv")["cluster"].tolist() == labels["cluster"].tolist()


def test_scaled_columns_and_a_page(command, here):
    pytest.importorskip("matplotlib")
    options = ("--algorithm", "mixture", "--covariance-type", "diag", "--report")
    options = (*options, "--scale", "standard")
    assert command("fit", "points.csv", "-k", "3", *options)[0] == 0
    assert (here / "points-clusters" / "report.html").exists()
    model = lf.GaussianMixture.from_pretrained(here / "points-clusters" / "model")
    assert (model.covariance_type, model.scaling is None) == ("diag", False)
    means = pd.read_csv("points-clusters/centers.csv")[["long", "short"]].to_numpy()
    np.testing.assert_allclose(means, model.means_)


WRONG = {
    "bic of k-means": (["--select", "bic"], "--select bic: found --algorithm relocating"),
    "a kind": (["--algorithm", "mixture", "--covariance-type", "round"], "--covariance-type"),
    "kind of k-means": (
        ["--algorithm", "kmeans", "--covariance-type", "full"],
        "--covariance-type: kmeans does not have this option",
    ),
    "workers": (["--algorithm", "mixture", "--workers", "2"], "--algorithm: found mixture"),
    "keep": (["--algorithm", "mixture", "--keep", "0.5"], "--keep: mixture does not have this"),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("fault", WRONG)
def test_bad_options_are_one_line(command, fault):
    options, words = WRONG[fault]
    status, out, err = command("fit", "points.csv", "-k", "2:3", *options)
    assert (status, out) == (2, "")
    assert err.startswith("lloydformer: ")
    assert words in err
