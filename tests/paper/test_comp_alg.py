"""tab:comp-alg: the paper's cells, and circuits against their algorithms."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from lloydformer.paper import comp_alg
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.comp_alg import (
    BEYOND,
    STARRED,
    informal_weights,
    paper_table,
    wrong_cells,
)
from lloydformer.paper.verdict import Answer, Kind, read_label_texts
from lloydformer.paper.verify.problems import small_problems

ARTEFACT = load_artefact("comp-alg")


@pytest.fixture(scope="module")
def result():
    pieces = ARTEFACT.pieces(Scope(trials=4))
    assert list(pieces) == [*paper_table()["rows"], *BEYOND]
    measured = {name: pieces[name]() for name in ("soft", "spherical", "medoids", "informal")}
    found = {name: measured.get(name, measured["soft"]) for name in pieces}
    return json.loads(json.dumps(ARTEFACT.combine(found), allow_nan=False))


def test_circuits_agree_with_their_algorithms(result):
    claims = [verdict for verdict in ARTEFACT.verdicts(result) if verdict.kind is Kind.CLAIM]
    answers = {claim.here.split(":")[0]: claim.answer for claim in claims}
    assert len(claims) == 13
    assert answers.pop("trimmed") is Answer.OPEN  # a gamma for each cluster
    assert set(answers.values()) == {Answer.HOLDS}
    circuits = {said["circuit"] for said in read_label_texts()["comp-alg"]["claims"].values()}
    others = {"lloyd_binary", "robust_dot", "trimmed_by_gamma"}
    assert circuits - {"starred"} | {*STARRED} | others == {*paper_table()["rows"], *BEYOND}
    assert result["compared"]["soft"]["layers"]["problems"] == 4
    assert result["compared"]["soft"]["free"]["problems"] == 2
    assert 0 < result["compared"]["soft"]["layers"]["deviation"] < 1e-9


def test_rows_are_those_of_the_paper(result):
    assert result["rows"] == paper_table()["rows"]
    assert wrong_cells(result["rows"]) == []
    table, beyond = ARTEFACT.tables(result)
    assert [row[6] for row in table.rows][3] == "*Soft k-means"
    assert len(beyond.rows) == len(BEYOND)


@pytest.mark.parametrize("column", range(8))
def test_a_wrong_cell_is_named(result, column):
    doctored = copy.deepcopy(result)
    doctored["rows"]["trimmed"][column] += "?"
    *claims, cells, _ = ARTEFACT.verdicts(doctored)
    assert paper_table()["columns"][column] in cells.note
    assert cells.here == "55 of 56 cells"
    assert claims == ARTEFACT.verdicts(result)[:-2]


def test_a_missing_row_is_eight_wrong_cells(result):
    rows = {name: row for name, row in result["rows"].items() if name != "soft"}
    assert len(wrong_cells(rows)) == 8


@pytest.mark.parametrize("part", ["layers", "free"])
@pytest.mark.parametrize(("key", "value"), [("deviation", 1e-8), ("decisions", 1)])
def test_a_circuit_that_differs_does_not_hold(result, part, key, value):
    doctored = copy.deepcopy(result)
    for name in ("robust", "trimmed"):
        doctored["compared"][name][part][key] = value
    wrong = [v for v in ARTEFACT.verdicts(doctored) if v.answer is Answer.FAILS]
    assert [verdict.here.split(":")[0] for verdict in wrong] == ["trimmed", "robust"]


def test_a_star_holds_only_if_every_variation_does(result):
    for name in STARRED:
        doctored = copy.deepcopy(result)
        doctored["compared"][name]["layers"]["decisions"] = 1
        (starred,) = [v for v in ARTEFACT.verdicts(doctored) if v.here.startswith("starred")]
        assert starred.answer is Answer.FAILS


def test_the_informal_theorem_has_d_rectified_units_and_needs_their_shift(rng):
    (problem,) = small_problems(rng, 1)
    d, k = problem.points.shape[1], len(problem.centers)
    weights = informal_weights(problem)
    assert weights.w1.shape == weights.w2.shape == (d, d + k + 2)
    assert comp_alg.compare_informal(problem, 10).within(1e-12)
    positive = replace(problem, points=problem.points + 9, centers=problem.centers + 9)
    assert informal_weights(positive).w1[:, -k:].max() == 0  # nothing to shift
    assert comp_alg.compare_informal(positive, 10).within(1e-9)


def test_without_the_shift_the_informal_circuit_is_wrong(rng, monkeypatch):
    problems = small_problems(rng, 5)
    plain = comp_alg.informal_weights
    monkeypatch.setattr(
        comp_alg,
        "informal_weights",
        lambda p: plain(replace(p, points=np.abs(p.points), centers=np.abs(p.centers))),
    )
    assert not any(comp_alg.compare_informal(problem, 10).within(1e-3) for problem in problems)
