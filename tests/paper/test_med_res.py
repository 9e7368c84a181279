"""tab:med-res: small runs against independent computations, and claims that can fail."""

import numpy as np
import pytest
import torch

from lloydformer.algorithms.contract import run
from lloydformer.algorithms.robust import Medoids
from lloydformer.paper import med_res
from lloydformer.paper.artefact import Record, Scope, load_artefact
from lloydformer.paper.med_res import GAPS, draws_same_medoids, measure, run_fasterpam
from lloydformer.paper.paper_numbers import paper_numbers
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("med-res")

PAPER = paper_numbers("med-res")


@pytest.fixture
def points(rng, monkeypatch) -> np.ndarray:
    made = rng.uniform(size=(60, 4))
    monkeypatch.setattr(med_res, "load_scaled_points", lambda name: torch.from_numpy(made))
    return made


def as_printed() -> Record:
    """A result with the paper's own numbers, as the last and as the best medoids."""
    rows = {n: dict(zip(PAPER["columns"], v, strict=True)) for n, v in PAPER["rows"].items()}
    for row in rows.values():
        row |= {f"best_{c}": row[c] for c in GAPS}
        row["fasterpam"] = row["relocate"] = min(row[c] for c in GAPS)
    between = [c for c in GAPS if c not in ("0", "1e15")]
    return {
        "rows": rows,
        "errors": {n: {c: [0.0, 0.0] for c in between} for n in rows},
        "one_algorithm": list(rows),
        "fasterpam_rows": 100,
        "fasterpam_trials": 1,
        "n_trials": 10,
    }


def objective(points, centers) -> float:
    return np.log(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())


def answers(result: Record, kind: Kind) -> list[Answer | None]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def test_last_and_best_agree_with_the_plain_algorithm(points):
    found = measure("pc3", Scope(trials=1))
    start = np.random.default_rng(0).permutation(60)[:10]
    noise = int(np.random.RandomState(2).randint(2**31 - 1))  # of the third gap, as estimators draw
    history = run(Medoids(separation=1.0, seed=noise), points, points[start], 10).centers
    logs = [objective(points, centers) for centers in history]
    assert found["initial"][0] == pytest.approx(logs[0], abs=1e-5)
    assert found["last"]["1"][0] == pytest.approx(logs[-1], abs=1e-5)
    assert found["best"]["1"][0] == pytest.approx(min(logs), abs=1e-5)


def test_large_gaps_are_one_algorithm_and_small_ones_are_not(points, monkeypatch):
    assert measure("pc3", Scope(trials=1))["one_algorithm"]
    monkeypatch.setitem(GAPS, "x", 100.5)
    monkeypatch.setattr(med_res, "LARGE", ["1e2", "1e15", "x"])
    assert draws_same_medoids(points, np.arange(10), Scope())
    monkeypatch.setattr(med_res, "fit_paper_medoids", lambda p, start, gap, *_: _Drawn(gap))
    assert not draws_same_medoids(points, np.arange(10), Scope())


class _Drawn:
    def __init__(self, gap: float) -> None:
        self.medoid_indices_ = np.array([gap])


def test_no_single_exchange_improves_the_medoids_of_fasterpam(points):
    pytest.importorskip("kmedoids")
    (found,) = run_fasterpam(points, [np.arange(3)])
    best = objective(points, points[found])
    for place in range(3):
        for row in range(60):
            other = found.copy()
            other[place] = row
            assert objective(points, points[other]) >= best - 1e-6


def test_without_the_package_kmedoids_the_column_says_so(points, monkeypatch):
    monkeypatch.setattr(med_res, "has_fasterpam", lambda: False)
    pieces = ARTEFACT.pieces(Scope(trials=1))
    result = ARTEFACT.combine(dict.fromkeys(pieces, pieces["pc3"]()))
    assert result["rows"]["pc3"]["fasterpam"] is None
    best = ARTEFACT.tables(result)[1]
    assert best.rows[0][-2] == "the package kmedoids is not installed"
    assert "FasterPAM on no rows (the package kmedoids is not installed)" in best.caption
    last = ARTEFACT.verdicts(result)[-2]
    assert "the package kmedoids is not installed" in last.here
    assert last.answer is Answer.UNDECIDED


def test_rows_are_the_papers(points):
    pieces = ARTEFACT.pieces(Scope(trials=2))
    assert list(pieces) == list(PAPER["rows"])
    result = ARTEFACT.combine(dict.fromkeys(pieces, pieces["pc3"]()))
    assert set(PAPER["columns"]) <= set(result["rows"]["pc3"])
    assert all(row[f"best_{c}"] <= row[c] for row in result["rows"].values() for c in GAPS)
    assert {len(table.rows) for table in ARTEFACT.tables(result)} == {10}


def test_the_papers_own_numbers_are_its_own():
    assert answers(as_printed(), Kind.NUMBER) == [Answer.HOLDS] * 80
    expected = [Answer.HOLDS, Answer.OPEN, Answer.HOLDS]  # with errors of 0
    assert answers(as_printed(), Kind.CLAIM) == expected
    assert answers(as_printed(), Kind.BEYOND) == [None] * 5


def test_counts_of_the_paper_and_of_our_starts():
    above, large, balance = ARTEFACT.verdicts(as_printed())[:3]
    assert above.here == "the best δ of the paper's table is above 0 on 9 of 10 sets"
    assert "not on ringnorm" in above.note
    assert "below 100 on 5 of 10 sets, and below 10^15 on 10" in large.here
    assert balance.here.endswith("between 0 and 10^15 on 9 of 10")
    (starts,) = [
        v for v in ARTEFACT.verdicts(as_printed()) if v.about.startswith("Do other starts")
    ]
    assert starts.here.startswith("the best δ is above 0 on 9 (best medoids of a run) and 9 (last")
    assert "8.6 of 10" in starts.note


def test_what_is_within_two_standard_errors_is_undecided_beyond_the_table():
    """The rule of tab:rob-res: trials that decide nothing do not refute the paper's table."""
    result = as_printed()
    result["errors"] = {name: {c: [1.0, 1.0] for c in e} for name, e in result["errors"].items()}
    expected = [Answer.HOLDS, Answer.OPEN, Answer.HOLDS]
    assert answers(result, Kind.CLAIM) == expected
    assert answers(result, Kind.BEYOND)[0] is Answer.UNDECIDED


def test_ends_that_are_clearly_better_refute_the_claims():
    result = as_printed()
    for row in result["rows"].values():
        row |= {"best_0": 1.0, "best_1e15": 1.0}
    expected = [Answer.FAILS, Answer.OPEN, Answer.FAILS]  # 100 to 10^8 are not better
    assert answers(result, Kind.CLAIM) == expected


@pytest.mark.parametrize(
    ("value", "answer"), [(1.0, Answer.HOLDS), (20.0, Answer.FAILS)], ids=["better", "worse"]
)
def test_small_gaps_that_are_clearly_better_or_worse_decide_what_is_too_large(value, answer):
    result = as_printed()
    for row in result["rows"].values():
        row |= {"best_0.01": value, "best_1": value}
    assert answers(result, Kind.CLAIM)[1] is answer


def wrong_numbers(result: Record) -> dict[str, Answer | None]:
    found = [v for v in ARTEFACT.verdicts(result) if v.kind is Kind.NUMBER]
    return {v.about: v.answer for v in found if v.answer is not Answer.HOLDS}


@pytest.mark.parametrize(
    ("kind", "wrong", "fit"),
    [("", {}, "48 of 49"), ("best_", {"pc3, delta = 1": Answer.OPEN}, "49 of 49")],
    ids=["last", "best"],
)
def test_numbers_are_those_of_the_best_medoids_and_may_be_the_last(kind, wrong, fit):
    result = as_printed()
    result["rows"]["pc3"][f"{kind}1"] += 0.2
    assert wrong_numbers(result) == wrong
    (cell,) = [v for v in ARTEFACT.verdicts(result) if v.about == "pc3, delta = 1"]
    assert f"by the last, {fit} are within 0.1" in cell.note


def test_a_number_that_fits_neither_reading_is_wrong():
    result = as_printed()
    result["rows"]["pc3"]["1"] += 0.2
    result["rows"]["pc3"]["best_1"] -= 0.3
    assert wrong_numbers(result) == {"pc3, delta = 1": Answer.FAILS}


def test_an_initial_objective_can_be_wrong_and_depends_on_the_data_of_three_sets():
    result = as_printed()
    for row in result["rows"].values():
        row["initial"] += 0.2
    found = list(wrong_numbers(result).values())
    assert (found.count(Answer.FAILS), found.count(Answer.OPEN)) == (7, 3)


def test_equal_gaps_are_counted_beyond_the_paper():
    result = as_printed() | {"one_algorithm": ["pc3"]}
    gaps = ARTEFACT.verdicts(result)[-3]
    assert gaps.kind is Kind.BEYOND
    assert "on 1 of 10 sets" in gaps.here
    assert "its own random numbers" in gaps.note
