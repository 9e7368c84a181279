"""Every statement that `lloydformer verify` measures holds; wrong ones are detected."""

import json
from pathlib import Path

import numpy as np
import pytest

from lloydformer.verify import theorems
from lloydformer.verify.compare import Deviation
from lloydformer.verify.errata import ERRATA
from lloydformer.verify.finding import agreement, equality
from lloydformer.verify.remarks import all_finite, finite_temperature
from lloydformer.verify.statements import STATEMENTS, generator
from lloydformer.verify.theorems import THEOREMS

PUBLISHED = (
    Path(__file__).parents[2] / "benchmarks" / "results" / "paper" / "numerical-validation.json"
)
LONG = (finite_temperature, all_finite)
"""These compute the self-attention of ten thousand points."""


@pytest.mark.parametrize(
    "number", [i for i, s in enumerate(STATEMENTS) if s not in (*LONG, *ERRATA)]
)
def test_statement_holds(number, monkeypatch):
    """With fewer problems than the command has; tests/test_agreement.py draws others."""
    monkeypatch.setattr(theorems, "PER_FAMILY", 1)
    check(STATEMENTS[number], seed=1)


def check(statement, seed):
    finding = statement(generator(statement, seed))
    assert finding.holds, finding
    assert finding.problems >= 5
    return finding


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(THEOREMS)))
def test_theorem_holds_on_all_problems(number):
    check(THEOREMS[number], seed=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "part"),
    [(finite_temperature, "run"), (all_finite, "every_head")],
    ids=["encoder_cross", "every head"],
)
def test_ten_thousand_points_give_the_published_numbers(statement, part):
    """Those of `reproduce numerical-validation`, on smaller problems in its own test."""
    finding = statement(np.random.default_rng(2))
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))[part]
    assert finding.holds, finding
    assert finding.deviation == pytest.approx(published["centers"], rel=0.01)
    assert finding.labels == published["labels"][-1]


def test_a_wrong_circuit_does_not_agree():
    assert agreement("", "", Deviation(1e-10)).holds
    assert not agreement("", "", Deviation(1e-8)).holds
    assert not agreement("", "", Deviation(0.0, labels=1)).holds
    assert not agreement("", "", Deviation(0.0, weights=1)).holds
    assert not equality("", "", [0.0, 1e-3]).holds


def test_a_center_that_is_not_a_number_does_not_agree():
    assert not Deviation(np.nan).within(1e-9)
    assert not (Deviation(0.0) + Deviation(np.nan)).within(1e-9)
    assert not (Deviation(np.nan) + Deviation(0.0)).within(1e-9)
