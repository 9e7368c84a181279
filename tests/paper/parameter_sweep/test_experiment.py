"""fig:parameter_sweep: data sets, runs against plain numpy, and claims that can fail."""

import copy
import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.parameter_sweep import experiment
from lloydformer.paper.parameter_sweep.experiment import (
    AXES,
    GAMMAS,
    N_STEPS,
    choose_slice,
    draw_data_set,
    find_levels,
    measure_agreement,
    read_authors_losses,
    run_data_set,
)
from lloydformer.paper.verdict import Answer, Kind
from lloydformer.paper.verify.finite_temperature import MixtureSize

ARTEFACT = load_artefact("parameter-sweep")

TABLE = Path(__file__).parents[4] / "shared" / "paper" / "parameter_sweep_authors.csv.gz"


def test_a_slice_has_every_level_ten_times_and_all_slices_cover_the_grid():
    slices = [[find_levels(size) for size in choose_slice(number)] for number in range(100)]
    for one in slices:
        for axis in range(4):
            assert Counter(level[axis] for level in one) == dict.fromkeys(range(10), 10)
    assert len({level for one in slices for level in one}) == 10_000
    assert len({level[:3] for one in slices[:10] for level in one}) == 1000


def test_some_of_the_authors_losses_by_hand():
    losses = read_authors_losses()
    assert losses[0, 0, 0, 0] == pytest.approx([3.3355427, 1.4956304, 0.2681389])
    assert losses[0, 0, 1, 2, 2] == pytest.approx(-0.003805399)
    assert np.isnan(losses).sum() == 148


@pytest.mark.skipif(not TABLE.exists(), reason="the authors' table is not at hand")
def test_the_authors_losses_are_their_table():
    with gzip.open(TABLE, "rt") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == read_authors_losses().size
    for row in rows[::7]:
        at = [axis.index(int(row[name])) for name, axis in {**AXES, "Gamma": GAMMAS}.items()]
        theirs = float(row["Loss"] or "nan")
        assert read_authors_losses()[tuple(at)] == pytest.approx(theirs, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("d", [1, 4])
def test_a_run_is_what_plain_numpy_finds(d):
    setting = MixtureSize(clusters=5, dimensions=d, scale=2, points=774)
    points, centers = (t.double().numpy() for t in draw_data_set(setting, seed=3))
    assert len(points) == 5 * (774 // 5)
    assert points.min(axis=0) == pytest.approx(np.zeros(d))
    assert points.max(axis=0) == pytest.approx(np.full(d, 2.0))
    lloyd = _plainly(points, centers, None)
    expected = [_plainly(points, centers, gamma) - lloyd for gamma in GAMMAS]
    assert run_data_set(setting, seed=3)["losses"] == pytest.approx(expected, abs=2e-4)


def _plainly(points, centers, gamma):
    """The log objective after ten steps, hard or soft, from one n x k matrix a step."""
    for _ in range(N_STEPS):
        squares = ((points[:, None] - centers) ** 2).sum(axis=2)
        if gamma is None:
            shares = np.eye(len(centers))[squares.argmin(axis=1)]
        else:
            shares = np.exp(-gamma * (squares - squares.min(axis=1, keepdims=True)))
            shares /= shares.sum(axis=1, keepdims=True)
        centers = shares.T @ points / shares.sum(axis=0)[:, None]
    return np.log(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())


def test_the_mean_squared_distance_of_two_points():
    setting = MixtureSize(clusters=5, dimensions=2, scale=3, points=100)
    points, _ = draw_data_set(setting, seed=0)
    pairs = torch.cdist(points.double(), points.double()).square().mean().item() / 9
    assert run_data_set(setting, seed=0)["apart"] == pytest.approx(pairs, abs=1e-4)


def test_a_run_that_loses_a_cluster_has_no_loss(monkeypatch):
    points = torch.tensor([[0.0], [0.1], [1.0], [1.1]])
    twice = points[[0, 0, 2]]
    monkeypatch.setattr(experiment, "draw_data_set", lambda *a: (points, twice))
    assert run_data_set(MixtureSize(5, 1, 1, 100), seed=0)["losses"] == [None] * 3


def test_a_piece_is_a_slice_and_can_be_written_as_json(monkeypatch):
    few = [size for size in choose_slice(0) if size.points == 100]
    monkeypatch.setattr(experiment, "choose_slice", lambda number: iter(few))
    found = ARTEFACT.pieces(Scope(trials=1))["slice-00"]()
    assert len(found["runs"]) == len(found["again"]) == 10
    assert found["runs"] != found["again"]
    assert json.loads(json.dumps(found, allow_nan=False)) == _as_json(found)
    assert len(ARTEFACT.pieces(Scope(full=True))) == 100
    assert len(ARTEFACT.pieces(Scope(trials=1000))) == 100


def _as_json(found):
    return {k: [{**run, "levels": list(run["levels"])} for run in v] for k, v in found.items()}


@pytest.fixture(scope="module")
def perfect():
    """A result in which every run has the authors' own Loss."""
    losses, found = read_authors_losses(), {}
    for number in range(100):
        found_runs = [
            {
                "levels": find_levels(size),
                "apart": float(size.dimensions),
                "losses": [None if x != x else float(x) for x in losses[find_levels(size)]],
            }
            for size in choose_slice(number)
        ]
        found[f"slice-{number:02}"] = {"runs": found_runs, "again": found_runs}
    return json.loads(json.dumps(ARTEFACT.combine(found), allow_nan=False))


def answers(result, kind: Kind = Kind.CLAIM) -> list[Answer | None]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def test_all_claims_hold_for_the_authors_own_runs(perfect):
    assert answers(perfect) == [Answer.HOLDS] * 6
    assert answers(perfect, Kind.NUMBER) == [Answer.HOLDS] * 120
    assert answers(perfect, Kind.BEYOND) == [None] * 4
    assert perfect["agreement"]["worth"]["correlation"] == 1.0
    assert perfect["by_level"]["ours"] == perfect["by_level"]["authors"]
    assert len(perfect["rows"]) == 40
    assert perfect["by_chance"]["ours"]["correlation"] == 1.0
    assert perfect["runs"][0] == "5 1 1 100 3.3355 1.4956 0.26814"


def test_means_by_level_are_means(perfect):
    losses = read_authors_losses()[:, :, :, 9, 1]
    assert perfect["rows"]["Points 1000000"][1] == pytest.approx(np.nanmean(losses), abs=1e-5)
    cell = perfect["by_pair"]["ours"]["F"][1][3]  # 2 dimensions, 20 clusters
    assert cell == pytest.approx(np.nanmean(read_authors_losses()[3, 1]), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "broken"), [("Dimensions", 1), ("Points", 3), ("Clusters", 3), ("Scale", 5)]
)
def test_a_reversed_trend_does_not_hold(perfect, name, broken):
    doctored = copy.deepcopy(perfect)
    doctored["by_level"]["ours"][name]["mean"].reverse()
    expected = [Answer.HOLDS] * 6
    expected[broken] = Answer.FAILS
    assert answers(doctored) == expected
    assert Answer.FAILS in answers(doctored, Kind.NUMBER)
    doctored["counts"]["ours"] = 300  # a hundredth of the authors' runs
    expected[broken] = Answer.UNDECIDED
    assert answers(doctored) == expected
    doctored["by_level"]["authors"][name]["mean"].reverse()
    expected[broken] = Answer.FAILS
    assert answers(doctored) == expected


@pytest.mark.parametrize(
    ("path", "value", "broken"),
    [
        (("corners", "ours", "many points, gamma 100"), 9.0, 4),
        (("corners", "ours", "many clusters, scale 10"), None, 4),
        (("apart", 0), 11.0, 2),
        (("by_level", "ours", "Points", "mean", 4, 2), 5.0, 0),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_other_claims_can_fail(perfect, path, value, broken):
    doctored = copy.deepcopy(perfect)
    part = doctored
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert answers(doctored)[broken] is Answer.FAILS


def test_a_change_within_chance_is_named(perfect):
    doctored = copy.deepcopy(perfect)
    points = doctored["by_level"]["ours"]["Points"]
    points["deviation"] = [[0.0, 0.0, 0.0]] * 10
    assert "within chance" not in ARTEFACT.verdicts(doctored)[3].note
    points["deviation"] = [[0.0, 0.0, 9.0]] * 10
    note = ARTEFACT.verdicts(doctored)[3].note
    assert "Here the change with points at γ = 100, +0.012 ± " in note
    assert note.count("within chance") == 1


def test_a_mean_far_from_the_authors_is_outside_unless_the_runs_are_few(perfect):
    doctored = copy.deepcopy(perfect)
    doctored["by_level"]["ours"]["Scale"]["mean"][0][0] += 0.2
    assert answers(doctored, Kind.NUMBER).count(Answer.FAILS) == 1
    doctored["counts"]["ours"] = 30
    assert answers(doctored, Kind.NUMBER).count(Answer.UNDECIDED) == 1


def test_rank_correlation_is_that_of_ranks():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=(2, 10, 10, 10, 10, 3)) + 1
    ours[rng.random(ours.shape) < 0.99] = np.nan
    there = np.isfinite(ours)
    ranks = [x[there].argsort().argsort() for x in (ours, theirs)]
    found = measure_agreement(ours, theirs)["all"]
    assert found["runs"] == there.sum()
    assert found["correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-4)


def test_pictures_have_the_papers_panels_and_the_same_axes(perfect):
    ours, authors = ARTEFACT.pictures(perfect)
    for picture in (ours, authors):
        titles = [ax.get_title(loc="left") for ax in picture.figure.axes]
        assert titles[:8] == list("ABCDEFGH")
    limits = [[ax.get_ylim() for ax in p.figure.axes[:4]] for p in (ours, authors)]
    assert limits[0] == limits[1]
    (table,) = ARTEFACT.tables(perfect)
    assert table.rows[0] == ["Clusters 5", "0.482 (0.482)", "0.074 (0.074)", "0.007 (0.007)"]
