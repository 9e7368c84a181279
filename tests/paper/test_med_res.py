"""tab:med-res: tiny runs, the numbers by another way, and claims that can fail."""

import numpy as np
import pytest
import torch

from lloydformer.algorithms.contract import run
from lloydformer.algorithms.medoids import Medoids
from lloydformer.paper.artefact import Record
from lloydformer.paper.med_res import ARTEFACT, experiment, fasterpam
from lloydformer.paper.med_res.experiment import measured
from lloydformer.paper.med_res.settings import GAPS
from lloydformer.paper.paper_numbers import numbers
from lloydformer.paper.scope import Scope

PAPER = numbers("med-res")


@pytest.fixture
def points(rng, monkeypatch) -> np.ndarray:
    made = rng.uniform(size=(60, 4))
    monkeypatch.setattr(experiment, "scaled", lambda name: torch.from_numpy(made))
    return made


def as_printed() -> Record:
    """A result with the paper's own numbers, as the last and as the best medoids."""
    rows = {n: dict(zip(PAPER["columns"], v, strict=True)) for n, v in PAPER["rows"].items()}
    for row in rows.values():
        row |= {f"best_{c}": row[c] for c in GAPS}
        row["fasterpam"] = min(row[c] for c in GAPS)
    between = [c for c in GAPS if c not in ("0", "1e15")]
    return {"rows": rows, "errors": {n: {c: [0.0, 0.0] for c in between} for n in rows},
            "one_algorithm": list(rows), "fasterpam_rows": 100, "fasterpam_trials": 1,
            "n_trials": 10}  # fmt: skip


def objective(points, centers) -> float:
    return np.log(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())


def failed(result: Record) -> list[str]:
    return [claim.says for claim in ARTEFACT.claims(result) if not claim.holds]


def test_last_and_best_agree_with_the_plain_algorithm(points):
    found = measured("pc3", Scope(trials=1))
    start = np.random.default_rng(0).permutation(60)[:10]
    noise = int(np.random.RandomState(2).randint(2**31 - 1))  # of the third gap, as estimators draw
    history = run(Medoids(separation=1.0, seed=noise), points, points[start], 10).centers
    logs = [objective(points, centers) for centers in history]
    assert found["initial"][0] == pytest.approx(logs[0], abs=1e-5)
    assert found["last"]["1"][0] == pytest.approx(logs[-1], abs=1e-5)
    assert found["best"]["1"][0] == pytest.approx(min(logs), abs=1e-5)


def test_large_gaps_are_one_algorithm_and_small_ones_are_not(points, monkeypatch):
    assert measured("pc3", Scope(trials=1))["one_algorithm"]
    monkeypatch.setattr(experiment, "GAPS", {"0": 0.0, "1e2": 1e2, "1e15": 1e15, "x": 100.5})
    assert experiment._one_algorithm(points, np.arange(10), 0)
    monkeypatch.setattr(experiment, "_fitted", lambda p, s, gap, seed: _Drawn(gap))
    assert not experiment._one_algorithm(points, np.arange(10), 0)


class _Drawn:
    def __init__(self, gap: float) -> None:
        self.medoid_indices_ = np.array([gap])


def test_fasterpam_leaves_no_exchange_that_is_better(points):
    pytest.importorskip("kmedoids")
    (found,) = fasterpam.medoids(points, [np.arange(3)])
    best = objective(points, points[found])
    for place in range(3):
        for row in range(60):
            other = found.copy()
            other[place] = row
            assert objective(points, points[other]) >= best - 1e-6


def test_without_the_package_the_column_is_empty_with_a_word(points, monkeypatch):
    monkeypatch.setattr(fasterpam, "is_installed", lambda: False)
    pieces = ARTEFACT.pieces(Scope(trials=1))
    result = ARTEFACT.result(dict.fromkeys(pieces, pieces["pc3"]()))
    assert result["rows"]["pc3"]["fasterpam"] is None
    assert ARTEFACT.tables(result)[1].rows[0][-1] == "the package kmedoids is not installed"
    assert ARTEFACT.claims(result)[-1].ours == "the package kmedoids is not installed"


def test_rows_are_the_papers(points):
    pieces = ARTEFACT.pieces(Scope(trials=2))
    assert list(pieces) == list(PAPER["rows"])
    result = ARTEFACT.result(dict.fromkeys(pieces, pieces["pc3"]()))
    assert set(PAPER["columns"]) <= set(result["rows"]["pc3"])
    assert all(row[f"best_{c}"] <= row[c] for row in result["rows"].values() for c in GAPS)
    assert {len(table.rows) for table in ARTEFACT.tables(result)} == {10}


def test_the_papers_own_numbers_fulfil_its_claims():
    assert failed(as_printed()) == []


def test_the_papers_own_table_has_its_best_at_zero_once():
    above = ARTEFACT.claims(as_printed())[0]
    assert (above.paper, above.ours) == ("9 of 10", "9 of 10")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [("best_0", 1.0, "delta above 0"), ("best_1e15", 1.0, "too large"),
     ("initial", 1.0, "initial column"), ("1", 20.0, "Every setting"), ("1", 20.0, "last"),
     ("best_1", 20.0, "best medoids seen"), ("fasterpam", 1.0, "FasterPAM")],
    ids=["zero", "large", "initial", "every", "last", "best", "pam"],
)  # fmt: skip
def test_claims_can_fail(column, value, says):
    result = as_printed()
    for row in result["rows"].values():
        row[column] = value
    assert any(says in words for words in failed(result))


def test_balance_must_be_beyond_chance():
    result = as_printed()
    result["errors"] = {name: {c: [1.0, 1.0] for c in e} for name, e in result["errors"].items()}
    assert any("balance" in says for says in failed(result))
    result["one_algorithm"] = ["pc3"]
    assert any("same medoids" in says for says in failed(result))
