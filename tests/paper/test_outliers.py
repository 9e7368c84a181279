"""Outliers, thresholds and alternating medoids: measures by hand, and claims that can fail."""

import copy
import json

import numpy as np
import pytest

from lloydformer import algorithms
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.outliers import (
    LLOYD,
    ROBUST,
    VARIED,
    alternate_medoids,
    center_error,
    draw_problem,
)
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("outliers")


@pytest.fixture(scope="module")
def result():
    pieces = ARTEFACT.pieces(Scope(trials=6))
    found = ARTEFACT.combine({name: piece() for name, piece in pieces.items()})
    return json.loads(json.dumps(found, allow_nan=False))


def answers(result):
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is Kind.CLAIM]


def test_a_problem_has_its_outliers_last_and_lies_in_the_unit_square():
    points, means, n_outliers = draw_problem(0, 3, VARIED)
    assert (len(points), n_outliers) == (550, 50)
    assert (points.min(), points.max()) == (0.0, 1.0)
    nearest = np.linalg.norm(points[:, None] - means, axis=2).min(axis=1)
    assert np.median(nearest[-50:]) > 4 * np.median(nearest[:-50])
    again, _, _ = draw_problem(0, 3, VARIED)
    np.testing.assert_array_equal(points, again)


def test_without_outliers_the_error_is_that_of_a_mean():
    """The mean of 100 points is off by a tenth of their radius."""
    errors = [center_error(algorithms.Lloyd(), *draw_problem(0, t, 0.0)) for t in range(20)]
    assert 0.08 < np.mean(errors) < 0.12


def test_alternation_by_hand():
    """From 0 and 1: {0} keeps its medoid, and of {1, 2, 9} the point 2 is nearest to the rest."""
    points = np.array([[0.0], [1.0], [2.0], [9.0]])
    assert alternate_medoids(points, np.array([0, 1])) == 50.0
    assert alternate_medoids(points, np.array([1, 3])) == 2.0


def test_claims_hold_and_the_third_depends_on_the_temperature(result):
    assert answers(result) == [Answer.HOLDS, Answer.HOLDS, Answer.OPEN, Answer.HOLDS]
    assert list(result["rows"]) == ["0.0", "0.02", "0.05", "0.1", "0.2"]


def test_claims_can_fail(result):
    wrong = copy.deepcopy(result)
    wrong["rows"]["0.1"][ROBUST[1]] |= {"difference": 0.1, "error": 0.01}
    wrong["curves"]["kept"]["0.99"]["mean"] = min(
        one["mean"] for one in wrong["curves"]["kept"].values()
    )
    wrong["curves"]["weights"] = dict.fromkeys(wrong["curves"]["weights"], 0.9)
    wrong["medoids"]["below"] = [0.1, 0.01]
    assert answers(wrong) == [Answer.FAILS] * 4
    wrong["rows"]["0.1"][ROBUST[1]]["difference"] = 0.01
    assert answers(wrong)[0] is Answer.UNDECIDED


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert table.columns[1] == LLOYD
    assert len(table.rows) == 5
    (picture,) = ARTEFACT.pictures(result)
    shares, kept, gammas = picture.figure.axes
    assert shares.lines[0].get_label() == LLOYD
    assert len(kept.lines[0].get_xdata()) == 8
    assert gammas.get_xscale() == "log"
