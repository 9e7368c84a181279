"""tab:openml-trf: small runs against independent computations, and claims that can fail."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from lloydformer.data.paths import find_in_data_folder
from lloydformer.learning.pretrained import load
from lloydformer.paper import openml_trf
from lloydformer.paper.artefact import Record, Scope, load_artefact
from lloydformer.paper.openml_trf import draw_trials, measure
from lloydformer.paper.paper_numbers import paper_numbers
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("openml-trf")

PAPER = paper_numbers("openml-trf")


@pytest.fixture
def points(rng, monkeypatch) -> torch.Tensor:
    """60 rows with 40 columns in place of every real set."""
    made = torch.from_numpy(rng.uniform(size=(60, 40)))
    monkeypatch.setattr(openml_trf, "load_scaled_points", lambda name: made)
    return made


def as_printed() -> Record:
    """A result with the paper's own numbers."""
    pairs = {n: dict(zip(PAPER["columns"], v, strict=True)) for n, v in PAPER["rows"].items()}
    more = {"polished": 4.9, "lloyd_longer": 5.0, "greedy": 4.0, "ten_random": 4, "ten_greedy": 4}
    return {
        "rows": {name: {**row, **more} for name, row in pairs.items()},
        "sizes": {name: [1000, 32] for name in pairs},
        "n_trials": 40,
    }


def test_a_trial_has_its_own_rows_columns_and_centers(points):
    batch = draw_trials(points, 3, np.random.default_rng(0))
    assert batch.points.shape == (1, 3, 60, 32)
    assert batch.centers.shape == (1, 3, 10, 32)
    first, second = batch.points[0, :2]
    assert not torch.equal(first.sort(dim=0).values, second.sort(dim=0).values)  # columns
    for found, centers in zip(batch.points[0], batch.centers[0], strict=True):
        rows = {tuple(row) for row in found.tolist()}
        assert {tuple(row) for row in centers.tolist()} < rows


def test_large_sets_are_cut_to_1024_rows(rng):
    batch = draw_trials(torch.from_numpy(rng.uniform(size=(1100, 33))), 1, rng)
    assert batch.points.shape == (1, 1, 1024, 32)
    assert len(batch.points[0, 0].unique(dim=0)) == 1024


def test_columns_agree_with_scikit_learn_and_with_the_circuit(points):
    found = measure("sonar", Scope(trials=2))
    assert found["n_trials"] == 2
    batch = draw_trials(points, 2, np.random.default_rng(0))
    lloyd, transformer, initial = [], [], []
    for x, c in zip(batch.points[0].double(), batch.centers[0].double(), strict=True):
        model = KMeans(10, init=c.numpy(), n_init=1, max_iter=10, tol=0).fit(x.numpy())
        lloyd.append(np.log(model.inertia_))
        centers = load("d32-k10").circuit()(x.float(), c.float(), n_layers=10).centers
        ends = [((x[:, None] - e.double()) ** 2).sum(2).amin(1).sum() for e in centers[[0, -1]]]
        initial.append(ends[0].log().item())
        transformer.append(ends[1].log().item())
    assert found["mean"]["initial"] == pytest.approx(np.mean(initial), abs=2e-5)
    assert found["mean"]["lloyd"] == pytest.approx(np.mean(lloyd), abs=2e-5)
    assert found["mean"]["transformer"] == pytest.approx(np.mean(transformer), abs=2e-4)
    assert found["std"]["lloyd"] == pytest.approx(np.std(lloyd), abs=2e-5)
    # more steps and more starts from the same place are never worse
    assert found["mean"]["lloyd_longer"] <= found["mean"]["lloyd"]
    assert found["mean"]["polished"] < found["mean"]["transformer"]
    assert found["mean"]["ten_greedy"] <= found["mean"]["greedy"]


def test_rows_are_the_papers(points):
    pieces = ARTEFACT.pieces(Scope(trials=1))
    assert list(pieces) == list(PAPER["rows"])
    result = ARTEFACT.combine(dict.fromkeys(pieces, pieces["sonar"]()))
    row = result["rows"]["sonar"]
    assert set(PAPER["columns"]) <= set(row)
    assert row["relative_diff_percent"] == pytest.approx(
        100 * (row["transformer"] / row["lloyd"] - 1), abs=1e-3
    )
    assert [len(table.rows) for table in ARTEFACT.tables(result)] == [15, 15]


def answers(result: Record, kind: Kind) -> list[Answer | None]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def test_the_papers_own_numbers_fulfil_its_claims():
    assert answers(as_printed(), Kind.CLAIM) == [Answer.HOLDS] * 2
    assert answers(as_printed(), Kind.NUMBER) == [Answer.HOLDS] * 105
    assert answers(as_printed(), Kind.BEYOND) == [None] * 3


@pytest.mark.parametrize(
    ("name", "column", "value", "broken"),
    [
        ("pc3", "transformer", 9.0, 0),
        ("pc3", "relative_diff_percent", 8.2, 1),
        ("musk", "relative_diff_percent", -0.1, 1),
    ],
    ids=["initial", "above", "below"],
)
def test_claims_can_fail_and_fewer_trials_do_not_refute_them(name, column, value, broken):
    result = as_printed()
    result["rows"][name][column] = value
    expected = [Answer.HOLDS] * 2
    expected[broken] = Answer.FAILS
    assert answers(result, Kind.CLAIM) == expected
    expected[broken] = Answer.UNDECIDED
    assert answers(result | {"n_trials": 16}, Kind.CLAIM) == expected


@pytest.mark.parametrize(
    ("column", "off"),
    [("lloyd", 0.2), ("transformer", -0.2), ("initial_std", 0.11), ("relative_diff_percent", 0.31)],
)
def test_numbers_can_be_outside(column, off):
    result = as_printed()
    result["rows"]["musk"][column] += off
    outside = [v for v in ARTEFACT.verdicts(result) if v.answer is Answer.FAILS]
    assert [verdict.about.split(",")[0] for verdict in outside if verdict.about] == ["musk"]


def test_findings_beyond_the_paper_are_counts():
    result = as_printed()
    for row in result["rows"].values():
        row |= {"greedy": 20.0, "polished": 20.0}
    found = [v.here for v in ARTEFACT.verdicts(result) if v.kind is Kind.BEYOND]
    assert found[1:] == ["on 0 of 15 sets"] * 2


@pytest.mark.skipif(
    find_in_data_folder("sonar") is None, reason="LLOYDFORMER_DATA has no sonar.npz"
)
def test_sonar_agrees_with_the_paper():
    found = measure("sonar", Scope(trials=20))["mean"]
    paper = dict(zip(PAPER["columns"], PAPER["rows"]["sonar"], strict=True))
    for column in ("initial", "lloyd", "transformer"):
        assert found[column] == pytest.approx(paper[column], abs=0.1)
