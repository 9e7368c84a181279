"""The study of the number of clusters: its problems, the ways beside ours, and its tables."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

ROOT = Path(__file__).parents[4]


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("choose_k")


@pytest.fixture
def problems(study):
    return importlib.import_module("choose_k_problems")


@pytest.mark.parametrize("number", range(0, 40, 3))
def test_planted_clusters_are_as_far_apart_as_they_should_be(problems, number):
    one, again = (problems.draw_planted("tune", number) for _ in range(2))
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X, problems.draw_planted("report", number).X)
    assert one.k == 1 + number % 20
    assert np.isfinite(one.X).all()
    assert 140 <= len(one.X) <= 2000
    sizes = np.bincount(one.y)
    assert sizes.min() >= 12
    if one.facts["units"] != "one":
        return
    apart = problems.OVERLAPS[one.facts["overlap"]]
    for i in range(one.k):
        for j in range(i):
            first, second = one.X[one.y == i], one.X[one.y == j]
            line = first.mean(axis=0) - second.mean(axis=0)
            length = np.linalg.norm(line)
            widths = sum((rows @ (line / length)).std() for rows in (first, second))
            assert length > 0.6 * apart * widths  # both are estimates


def test_noise_is_one_group_of_each_distribution(problems):
    drawn = [problems.draw_noise("tune", number) for number in range(len(problems.NOISE))]
    assert {problem.facts["distribution"] for problem in drawn} == set(problems.NOISE)
    assert all(problem.k == 1 and np.isfinite(problem.X).all() for problem in drawn)


def test_every_way_finds_clear_clusters(study, problems, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = np.array([[0.0, 0], [20, 0], [0, 20]])[y] + rng.normal(size=(120, 2))
    found = study.measure(problems.Problem("planted", X, y), list(study.CONTENDERS), tmp_path)
    assert len(found["found"]) == 8
    for way, (k, index, seconds) in found["found"].items():
        assert (k, index) == (3, 1), way
        assert seconds > 0


def test_ways_that_can_say_so_find_no_clusters_in_noise(study, problems, tmp_path):
    X = np.random.default_rng(0).random(size=(200, 2))
    problem = problems.Problem("noise", X, np.zeros(200, dtype=int))
    found = study.measure(problem, ["default", "gap"], tmp_path)["found"]
    assert (found["lloydformer fit"][0], found["gap, first"][0]) == (1, 1)


def test_the_bic_of_x_means_is_that_of_scikit_learn_for_one_cluster(study):
    """Both are BICs of one round normal distribution."""
    from sklearn.mixture import GaussianMixture

    X = np.random.default_rng(0).normal(size=(400, 3)) * 5
    other = GaussianMixture(1, covariance_type="spherical").fit(X).bic(X)
    # scikit-learn's is to be low and twice as large; ours has n - 1 in its variance.
    assert study._spherical_bic(X, np.zeros(400)) == pytest.approx(-other / 2, rel=1e-3)


def test_the_study_goes_on_where_it_was_and_refuses_other_results(study, tmp_path, monkeypatch):
    path = tmp_path / "found.json"
    options = ["--planted", "2", "--noise", "0", "--only", "x-means", "--family", "tune"]
    monkeypatch.setattr("sys.argv", ["choose_k.py", *options, "--output", str(path)])
    study.main()
    first = json.loads(path.read_text())
    assert list(first["rows"]) == ["planted 0", "planted 1"]
    first["rows"]["planted 0"]["found"]["x-means"] = [7, 0.5, 1.0]
    path.write_text(json.dumps(first))
    monkeypatch.setattr("sys.argv", [*study.sys.argv, "--planted", "3"])
    study.main()
    again = json.loads(path.read_text())
    assert again["rows"]["planted 0"]["found"]["x-means"] == [7, 0.5, 1.0]
    assert list(again["rows"]) == ["planted 0", "planted 1", "planted 2"]
    right = [row["found"]["x-means"][0] == row["k"] for row in again["rows"].values()]
    assert again["summary"]["x-means"]["planted, right k"] == round(np.mean(right), 4)
    path.write_text(json.dumps(again | {"family": "report"}))
    with pytest.raises(SystemExit, match="remove it"):
        study.main()


def test_labels_of_the_published_sets_are_those_of_their_middles(problems):
    published = dict(problems.all_problems("report", 0, 0, None))
    names = ["S1", "S2", "S3", "S4", "A1", "grid, k = 16"]
    assert [*published] == names
    assert [problem.k for problem in published.values()] == [15, 15, 15, 15, 20, 16]
    X, y = published["S1"].X, published["S1"].y
    means = np.stack([X[y == j].mean(axis=0) for j in range(15)])
    assert adjusted_rand_score(y, ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)) > 0.98
