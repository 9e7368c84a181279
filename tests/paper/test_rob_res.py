"""tab:rob-res: small runs against independent computations, and claims that can fail."""

import numpy as np
import pytest
import torch

from lloydformer.algorithms.contract import run
from lloydformer.algorithms.robust import Robust
from lloydformer.data.paths import find_in_data_folder
from lloydformer.paper import rob_res
from lloydformer.paper.artefact import Record, Scope, load_artefact
from lloydformer.paper.paper_numbers import paper_numbers
from lloydformer.paper.rob_res import measure, run_trial, trim_by_quantile
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("rob-res")

PAPER = paper_numbers("rob-res")


@pytest.fixture
def points(rng, monkeypatch) -> np.ndarray:
    made = rng.uniform(size=(80, 4))
    monkeypatch.setattr(rob_res, "load_scaled_points", lambda name: torch.from_numpy(made))
    monkeypatch.delenv("LLOYDFORMER_DATA", raising=False)
    return made


def as_printed() -> Record:
    """A result with the paper's own numbers."""
    rows = {n: dict(zip(PAPER["columns"], v, strict=True)) for n, v in PAPER["rows"].items()}
    for row in rows.values():
        row |= {"keep_0.95": row["trimmed_0.95"], "keep_0.99": row["trimmed_0.99"]}
    errors = {name: dict.fromkeys(row, 0.0) for name, row in rows.items()}
    return {
        "rows": rows,
        "errors": errors,
        "runs": {"trimmed": [4], "robust": [6]},
        "repaired": None,
        "n_trials": 10,
    }


def objective(points, centers) -> float:
    return np.log(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())


def test_quantile_trim_by_hand():
    # distances to 0 are 0, 1, 4, 9: half of them are below the quantile 2.5
    points = np.array([[0.0], [1.0], [2.0], [3.0], [100.0], [101.0], [99.0]])
    centers = np.array([[0.0], [100.0]])
    found = trim_by_quantile(points, centers, 0.5, 1, np.random.default_rng(0))
    assert found.tolist() == [[0.5], [100.0]]


def test_a_cluster_that_is_trimmed_to_nothing_takes_a_random_point():
    points = np.array([[0.0], [1.0], [2.0], [9.0]])
    found = trim_by_quantile(points, np.array([[1.0], [9.0]]), 0.9, 1, np.random.default_rng(0))
    assert found[0].tolist() == [1.0]  # 0 and 2 are equally far: neither is strictly below
    assert found[1] in points


def test_a_trial_agrees_with_the_plain_algorithms(points):
    found = run_trial(points, 3)
    start = points[np.random.default_rng(3).permutation(80)[:10]]
    robust = run(Robust(inverse_temperature=0.01 / 2), points, start, 10).centers[-1]  # sqrt(4)
    centers = start
    for _ in range(10):
        labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.stack([points[labels == j].mean(axis=0) for j in range(10)])
    assert found["initial"] == pytest.approx(objective(points, start))
    assert found["lloyd"] == pytest.approx(objective(points, centers))
    assert found["robust_0.01"] == pytest.approx(objective(points, robust))


def test_rows_are_the_papers_and_every_run_is_counted(points, monkeypatch):
    monkeypatch.setattr(rob_res, "RUN", 2)  # ten trials in the paper
    pieces = ARTEFACT.pieces(Scope(trials=4))
    assert list(pieces) == list(PAPER["rows"])
    result = ARTEFACT.combine(dict.fromkeys(pieces, pieces["pc3"]()))
    assert set(PAPER["columns"]) <= set(result["rows"]["pc3"])
    assert len(result["runs"]["trimmed"]) == 2
    assert {len(table.rows) for table in ARTEFACT.tables(result)} == {10}
    assert ARTEFACT.verdicts(result)


def test_means_errors_and_counts_by_hand():
    columns = (
        "initial",
        "lloyd",
        "trimmed_0.95",
        "trimmed_0.99",
        "keep_0.95",
        "keep_0.99",
        "robust_0.01",
        "robust_0.001",
    )
    found = {name: {c: [2.0, 4.0] for c in columns} for name in PAPER["rows"]}
    found["pc4"] |= {"robust_0.01": [1.5, 4.3]}
    result = ARTEFACT.combine(found)
    assert result["rows"]["pc4"]["robust_0.01"] == pytest.approx(2.9)
    assert result["errors"]["pc4"]["robust_0.01"] == pytest.approx(0.4)
    assert result["runs"] == {"trimmed": [0], "robust": [1]}


def answers(result: Record, kind: Kind) -> list[Answer | None]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def test_the_papers_own_numbers_are_its_own():
    assert answers(as_printed(), Kind.NUMBER) == [Answer.HOLDS] * 60
    assert answers(as_printed(), Kind.BEYOND) == [Answer.UNDECIDED, None]


def with_differences(trimmed: float, robust: float, error: float, sets: int = 10) -> Record:
    """The result with these differences to Lloyd's on the first sets, and none on the others."""
    result = as_printed()
    for place, (name, row) in enumerate(result["rows"].items()):
        for column in ("trimmed_0.95", "trimmed_0.99", "robust_0.01", "robust_0.001"):
            off = trimmed if column.startswith("trimmed") else robust
            row[column] = row["lloyd"] + (off if place < sets else 1.0)
            result["errors"][name][column] = error
    return result


def other_starts(result: Record):
    return next(v for v in ARTEFACT.verdicts(result) if v.kind is Kind.BEYOND)


@pytest.mark.parametrize(
    ("trimmed", "robust", "sets", "answer", "decided"),
    [
        (-0.3, -0.3, 6, Answer.HOLDS, True),
        (-0.3, -0.3, 5, Answer.FAILS, False),  # five of six can be below at most
        (-0.1, -0.1, 10, Answer.HOLDS, False),
        (0.1, -0.3, 10, Answer.HOLDS, False),
        (0.3, -0.3, 10, Answer.FAILS, False),
    ],
    ids=["below", "too few", "within errors", "one within", "above"],
)
def test_counts_are_refuted_beyond_two_standard_errors(trimmed, robust, sets, answer, decided):
    result = with_differences(trimmed, robust, 0.1, sets)
    assert answers(result, Kind.CLAIM) == [answer]
    expected = [sets if off == -0.3 else 0 for off in (trimmed, robust)]
    found = other_starts(result)
    assert found.here.endswith(f"two standard errors on {expected[0]} and {expected[1]}")
    assert found.answer is (None if decided else Answer.UNDECIDED)


@pytest.mark.parametrize("who", ["trimmed", "robust"])
@pytest.mark.parametrize("count", [3, 8])
def test_a_table_with_other_counts_refutes_the_sentence(monkeypatch, who, count):
    result = with_differences(-0.3, -0.3, 0.1)
    assert answers(result, Kind.CLAIM) == [Answer.HOLDS]
    monkeypatch.setitem(rob_res.CLAIMED, who, count)
    assert answers(result, Kind.CLAIM) == [Answer.FAILS]


def test_every_run_of_ten_trials_is_reported():
    result = as_printed() | {"runs": {"trimmed": [2, 6, 3], "robust": [6, 7, 6]}}
    here = other_starts(result).here
    assert here.startswith("trimmed below on 2, 6, 3 and robust on 6, 7, 6 of 10 sets, in runs of")


@pytest.mark.parametrize(
    ("name", "column", "answer"),
    [
        ("pc3", "lloyd", Answer.FAILS),
        ("pc4", "robust_0.01", Answer.FAILS),
        ("sylvine", "initial", Answer.OPEN),
    ],
    ids=["lloyd", "robust", "other data"],
)
def test_numbers_can_be_outside(name, column, answer):
    result = as_printed()
    result["rows"][name][column] += 0.2
    found = [v for v in ARTEFACT.verdicts(result) if v.kind is Kind.NUMBER]
    outside = [(v.about.split(",")[0], v.answer) for v in found if v.answer is not Answer.HOLDS]
    assert outside == [(name, answer)]


def test_the_largest_difference_of_the_two_trimmings_is_found():
    result = as_printed()
    result["rows"]["pc4"]["keep_0.95"] += 0.2
    assert ARTEFACT.verdicts(result)[-1].here == "within 0.200 (pc4)"


def test_the_repaired_ringnorm_is_reported():
    result = as_printed() | {"repaired": {"initial": 7.6, "lloyd": 7.35}}
    last = ARTEFACT.verdicts(result)[-1]
    assert last.kind is Kind.BEYOND
    assert "7.600 (7.739)" in last.here


@pytest.mark.skipif(
    find_in_data_folder("mfeat-karhunen") is None,
    reason="LLOYDFORMER_DATA has no mfeat-karhunen.npz",
)
def test_mfeat_karhunen_agrees_with_the_paper():
    found = measure("mfeat-karhunen", Scope(trials=3))
    for column, printed in zip(PAPER["columns"], PAPER["rows"]["mfeat-karhunen"], strict=True):
        assert np.mean(found[column]) == pytest.approx(printed, abs=0.1)
