"""`lloydformer fit --algorithm constrained`: bounds on sizes from the command to the files."""

import json

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with two groups of unequal size in points.csv."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(120, 2)) + (np.arange(120) > 20)[:, None] * 6
    pd.DataFrame(rows, columns=["a", "b"]).to_csv("points.csv", index=False)
    return tmp_path


def test_sizes_are_within_the_bounds_in_every_file(command, here):
    options = ("--algorithm", "constrained", "--size-min", "0.25", "--size-max", "45,45,50")
    status, out, _ = command("fit", "points.csv", "-k", "3", *options, "--json")
    assert status == 0
    clusters = pd.read_csv("points-clusters/labels.csv")
    sizes = clusters["cluster"].value_counts().sort_index().to_numpy()
    assert (sizes >= 30).all()
    assert (sizes <= [45, 45, 50]).all()
    found = json.loads(out)
    assert [found["clusters"][str(j)]["size"] for j in range(3)] == sizes.tolist()
    model = lf.ConstrainedKMeans.from_pretrained(here / "points-clusters" / "model")
    assert (model.size_min, list(model.size_max)) == (0.25, [45, 45, 50])
    assert model.sizes_.tolist() == sizes.tolist()
    assert np.square(clusters["distance"]).sum() == pytest.approx(model.inertia_, rel=1e-4)


def test_a_description_has_the_sizes_of_the_fit(rng):
    rows = rng.normal(size=(90, 2)) + (np.arange(90) > 20)[:, None] * 6
    model = lf.ConstrainedKMeans(3, size_min=1 / 3, size_max=1 / 3, random_state=0).fit(rows)
    assert lf.describe(model, rows).clusters["size"].tolist() == [30, 30, 30]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--size-max", "many"), "--size-max: found 'many'; pass a number of rows (100)"),
        (("--size-max", "1.5"), "--size-max: found '1.5'"),
        (("--size-min", "-3"), "--size-min: found '-3'"),
        (("--size-max", "20"), "size_max: found bounds with room for 60 rows, but there are 120"),
        (("--size-min", "1,2"), "size_min: found 2 numbers for 3 clusters"),
    ],
)
def test_bad_bounds_are_refused_in_one_line(command, here, options, words):
    status, _, err = command("fit", "points.csv", "-k", "3", "--algorithm", "constrained", *options)
    assert status == 2
    assert words in " ".join(err.split())


def test_other_algorithms_have_no_bounds(command, here):
    status, _, err = command("fit", "points.csv", "-k", "3", "--size-max", "50")
    assert status == 2
    assert "--size-max: relocating does not have this option" in " ".join(err.split())
    assert "--algorithm constrained" in " ".join(err.split())
