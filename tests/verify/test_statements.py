"""Every statement that `lloydformer verify` measures holds; wrong ones are detected."""

import re
from pathlib import Path

import numpy as np
import pytest

from lloydformer.verify import theorems
from lloydformer.verify.compare import Deviation
from lloydformer.verify.errata import ERRATA
from lloydformer.verify.finding import agreement, equality, erratum
from lloydformer.verify.remarks import all_finite, finite_temperature
from lloydformer.verify.statements import STATEMENTS, generator
from lloydformer.verify.theorems import THEOREMS

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
LONG = (finite_temperature, all_finite)
"""These compute the self-attention of ten thousand points."""


@pytest.mark.parametrize(
    "number", [i for i, s in enumerate(STATEMENTS) if s not in (*LONG, *ERRATA)]
)
def test_statement_holds(number, monkeypatch):
    """With fewer problems than the command has; tests/test_agreement.py draws others."""
    monkeypatch.setattr(theorems, "PER_FAMILY", 2)
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
@pytest.mark.parametrize("statement", LONG, ids=lambda s: s.__name__)
def test_ten_thousand_points(statement):
    finding = statement(np.random.default_rng(2))
    assert finding.holds, finding


@pytest.mark.parametrize("statement", ERRATA, ids=lambda s: s.__name__)
def test_erratum_holds_and_the_numbers_on_the_page_are_those_of_seed_0(statement):
    number = int(statement.__name__[2:4])
    finding = check(statement, seed=0)
    count = re.search(r"\d+ of \d+", finding.printed).group()  # as printed 58 of 60 wrong, ...
    page = PAGE.read_text(encoding="utf-8")
    prose = page[page.index(f"**{number}. ") :].split("\n\n")[0]
    row = next(line for line in page.splitlines() if line.startswith(f"| {number} |"))
    assert count in row or count in prose.replace("\n", " ")


@pytest.mark.long
@pytest.mark.parametrize("statement", ERRATA, ids=lambda s: s.__name__)
def test_erratum_holds_for_another_seed(statement):
    check(statement, seed=1)


def test_every_item_of_the_errata_is_measured():
    numbers = {int(s.__name__[2:4]) for s in ERRATA} | {11}  # 11 is among the remarks
    assert numbers == set(range(1, 17))


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


def test_an_erratum_must_fail_as_printed_and_hold_as_repaired():
    assert erratum(0, "", printed=[0.5], repaired=[0.0]).holds
    assert not erratum(0, "", printed=[0.0], repaired=[0.0]).holds
    assert not erratum(0, "", printed=[0.5], repaired=[0.5]).holds
    assert not erratum(0, "", printed=[0.5], repaired=[np.nan]).holds
    assert erratum(0, "", printed=[np.nan], repaired=[0.0]).holds
