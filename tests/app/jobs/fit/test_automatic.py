"""The number of clusters without any option: planted clusters, none, and how sure it is."""

import json

import numpy as np
import pytest
from array_table import open_array
from sklearn.metrics import adjusted_rand_score

from lloydformer.app.jobs.fit.automatic import Trials, default_numbers
from lloydformer.app.jobs.fit.selection import fit_numbers
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.profiles.sample import draw_sample

RNG = np.random.default_rng(0)


def fit(points, numbers=None, **options):
    table, blocks = open_array(points)
    if numbers is None:
        numbers = default_numbers(len(points))
    return fit_numbers(FitSettings(data="-", **options), table, blocks, numbers)


def plant(k, d, n, apart, rng=RNG):
    """Normal clusters at the corners of a simplex or a grid, `apart` standard deviations apart."""
    if d >= k:
        middles = np.eye(k, d) * apart / np.sqrt(2)
    else:
        side = int(np.ceil(k ** (1 / d)))
        places = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d)
        middles = places[:k] * float(apart)
    truth = rng.permutation(np.arange(n) % k)
    return middles[truth] + rng.normal(size=(n, d)), truth


@pytest.mark.parametrize(("k", "d", "n"), [(2, 5, 100), (4, 2, 240), (4, 10, 600), (9, 2, 900)])
def test_planted_clusters_are_found(k, d, n):
    points, truth = plant(k, d, n, 8)
    result = fit(points)
    assert result.n_clusters == k
    assert result.evidence.level == "clear"
    assert adjusted_rand_score(truth, result.model.labels_) > 0.99
    assert [run.k for run in result.runs] == list(default_numbers(n))
    chosen = next(run for run in result.runs if run.k == k)
    assert chosen.objective == result.model.inertia_
    assert chosen.value == max(run.score for run in result.runs)


NOISE = {
    "normal": RNG.normal(size=(1000, 2)),
    "normal, many columns": RNG.normal(size=(150, 30)),
    "long": RNG.normal(size=(500, 3)) * [10, 1, 1],
    "uniform": RNG.random(size=(1000, 2)),
    "heavy tails": RNG.standard_t(3, size=(500, 5)),
}


@pytest.mark.parametrize("name", NOISE)
def test_no_clusters_are_found_where_there_are_none(name):
    result = fit(NOISE[name])
    assert (result.n_clusters, result.evidence.level) == (1, "none")
    assert "No evidence of clusters" in result.evidence.sentence


def test_clusters_that_are_asked_for_are_judged():
    noise = fit(NOISE["uniform"], [4])
    assert noise.n_clusters == 4
    assert noise.evidence.sentence.endswith("one group without gaps; the 4 clusters divide it.")
    assert fit(NOISE["uniform"], [4, 5]).evidence.level == "none"
    points, _ = plant(4, 2, 400, 8)
    too_many = fit(points, [7], algorithm="kmeans").evidence
    assert too_many.level == "some"
    assert too_many.weakest_pair < 0
    assert fit(points, [1]).evidence.level == "some"
    assert fit(points, [4], algorithm="medoids").evidence.level == "clear"


def test_large_data_are_chosen_for_on_a_sample_and_every_seed_agrees():
    points, truth = plant(5, 8, 6000, 10)
    results = [fit(points.astype(np.float32), seed=seed) for seed in range(2)]
    for result in results:
        assert result.n_clusters == 5
        assert result.evidence.n_rows == 2000
        assert adjusted_rand_score(truth, result.model.labels_) == 1
        objectives = {run.k: run.objective for run in result.runs}
        # Objectives of the sample are in proportion to all rows.
        assert objectives[1] == pytest.approx(((points - points.mean(axis=0)) ** 2).sum(), rel=0.1)


def test_the_same_seed_gives_the_same_numbers():
    points, _ = plant(3, 2, 120, 5)
    one, other = fit(points, seed=3), fit(points, seed=3)
    assert [run.value for run in one.runs] == [run.value for run in other.runs]
    assert one.evidence == other.evidence


@pytest.mark.parametrize("n", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("k", [None, 1, 2])
def test_few_rows(n, k):
    if k is not None and k > n:
        return
    result = fit(RNG.normal(size=(n, 3)), None if k is None else [k])
    assert result.n_clusters == (k or 1)
    assert result.evidence.level == "none"
    assert ("too few rows" in result.evidence.sentence) == (n < 8)


def test_copies_of_few_rows():
    assert fit(np.ones((40, 2))).n_clusters == 1
    places = np.array([[0, 0], [9, 0], [0, 9], [9, 9.0]])
    assert fit(np.repeat(places, 12, axis=0)).n_clusters == 4


def test_more_columns_than_rows():
    """m rows have m coordinates: turned to them, distances and choices are the same."""
    points, _ = plant(3, 4, 90, 12)
    turn, _ = np.linalg.qr(RNG.normal(size=(2000, 4)))
    wide = points @ turn.T
    assert fit(wide).n_clusters == 3
    trials = Trials(draw_sample(open_array(wide)[1], 0), 0)
    narrow = Trials(draw_sample(open_array(points)[1], 0), 0)
    assert trials.scores([2, 3]) == pytest.approx(narrow.scores([2, 3]), rel=1e-6)


def test_directions_are_judged_as_directions():
    angles = (np.arange(300) % 3)[:, None] * 2 + 0.05 * RNG.normal(size=(300, 1))
    points = np.hstack([np.cos(angles), np.sin(angles)]) * RNG.uniform(1, 9, size=(300, 1))
    result = fit(points, algorithm="spherical")
    assert (result.n_clusters, result.evidence.level) == (3, "clear")


def test_the_command_writes_the_right_number_and_how_sure_it_is(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points, truth = plant(4, 2, 400, 8, np.random.default_rng(3))
    np.savetxt("points.csv", points, delimiter=",")
    status, out, err = command("fit", "points.csv", "--json")
    found = json.loads(out)
    assert (status, err, found["k"], found["algorithm"]) == (0, "", 4, "relocating")
    assert found["select"] == "auto"
    assert found["evidence"]["level"] == "clear"
    assert found["evidence"]["rows"] == 400
    assert list(found["rows"]) == [str(k) for k in range(1, 21)]
    assert found["rows"]["1"]["auto"] is None
    assert max(found["rows"], key=lambda k: found["rows"][k]["auto"] or -99) == "4"
    labels = np.loadtxt("points-clusters/labels.csv", delimiter=",", skiprows=1, usecols=1)
    assert adjusted_rand_score(truth, labels) > 0.99
    status, out, _ = command("fit", "points.csv", "--force")
    assert "k 4 was chosen from 1 to 20, and was written." in out
    head = next(line for line in out.splitlines() if "silhouette" in line)
    assert (" score " in head, "auto" in head) == (True, False)
    assert "Clear evidence of clusters" in out
    np.savetxt("noise.csv", NOISE["normal"], delimiter=",")
    status, out, _ = command("fit", "noise.csv", "--report")
    assert "No evidence of clusters" in out
    page = (tmp_path / "noise-clusters" / "report.html").read_text()
    assert "No evidence of clusters" in page
    assert "Score: k = 1 was chosen, as there is no evidence of clusters, and is shown" in page
