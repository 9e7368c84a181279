"""Every item of docs/errata.md is measured, and the page has the numbers of seed 0."""

import json
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from lloydformer.paper.datasets import OTHER_DATA
from lloydformer.paper.paper_numbers import paper_row
from lloydformer.paper.verify.errata import ERRATA
from lloydformer.paper.verify.errata.open_choices import INITIAL, fuzzy_step, keep_overall
from lloydformer.paper.verify.finding import (
    ErratumKind,
    Finding,
    PrintedAndRepaired,
    judge_erratum,
)
from lloydformer.paper.verify.statements import generator_for

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
PUBLISHED = ROOT / "benchmarks" / "results" / "paper" / "numerical-validation.json"
# The item on finite temperatures, which is among the remarks: it needs ten thousand points.
ELSEWHERE = 11


def number_of(statement) -> int:
    return int(statement.__name__[2:4])


def row(number: int, finding: Finding) -> str:
    cells = (str(number), finding.kind, finding.statement, finding.measured)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def prose(number: int) -> str:
    """The paragraph of an item, in one line."""
    return " ".join(PAGE[PAGE.index(f"**{number}. ") :].split("\n\n")[0].split())


by_number = pytest.mark.parametrize("statement", ERRATA, ids=lambda s: s.__name__)


@pytest.mark.long
@by_number
def test_an_item_holds_and_the_page_has_the_numbers_of_seed_0(statement):
    """Its row, and in its paragraph those of the note that are above rounding."""
    finding = statement(generator_for(statement, seed=0))
    assert finding.holds, finding
    assert finding.problems >= 5
    assert row(number_of(statement), finding) in ROWS
    numbers = re.findall(r"-?\d[\d.,]*(?:e-?\d+)?", finding.note)
    wanted = [number.rstrip(".,") for number in numbers if not re.search(r"e-1\d$", number)]
    assert [n for n in wanted if n not in prose(number_of(statement))] == []


@pytest.mark.long
@by_number
def test_an_item_holds_for_another_seed(statement):
    finding = statement(generator_for(statement, seed=1))
    assert finding.holds, finding


def test_every_item_has_rows_and_a_paragraph_with_its_kind():
    kinds = {}
    for line in ROWS:
        number, kind = line.split(" | ")[:2]
        kinds.setdefault(int(number.strip("| ")), []).append(kind)
    assert list(kinds) == list(range(1, 23))
    assert {number_of(s) for s in ERRATA} | {ELSEWHERE} == set(kinds)
    assert len(ROWS) == len(ERRATA) + 1
    for number, (kind, *_) in kinds.items():
        assert re.match(rf"\*\*{number}\. [^*]+\*\* \({kind}[);]", prose(number))


def test_the_item_on_finite_temperatures_has_the_published_numbers():
    """Those of docs/paper.md, which are made from the same file."""
    found = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    run, every = found["run"], found["every_head"]
    same = [sum(d["labels"][-1] == 0 for d in found["draws"][scale]) for scale in ("1", "10")]
    for words in (
        f"off by {run['centers']:.1e} of the picture's side",
        f"{run['labels'][-1]} of 10,000 final",
        f"agree in {same[0]} of 100, and in {same[1]} of 100",
        f"weight on itself is {every['itself']:.2g})",
        f"off by {every['centers']:.2f} of the picture's side after five",
    ):
        assert words in prose(ELSEWHERE)
    (line,) = [line for line in ROWS if line.startswith(f"| {ELSEWHERE} |")]
    assert f"centers off by {every['centers']:.2f} of the picture's side" in line


def test_the_page_lists_the_items_of_each_kind():
    listed = {}
    for kind in get_args(ErratumKind):
        (line,) = re.findall(rf"^\| {kind} \|.*\| ([\d, ]+) \|$", PAGE, flags=re.M)
        listed[kind] = [int(number) for number in line.split(", ")]
    counted = {kind: [] for kind in listed}
    for line in ROWS:
        number, kind = line.strip("| ").split(" | ")[:2]
        counted[kind].append(int(number))
    assert counted == listed


def test_item_16_compares_last_and_best_medoids_by_the_saved_result():
    saved = json.loads((ROOT / "benchmarks/results/paper/med-res.json").read_text())["rows"]

    def difference(kind: str) -> float:
        away = []
        for name in saved.keys() - OTHER_DATA:
            ours, theirs = saved[name], paper_row("med-res", name)
            for gap in ("0", "0.01", "1", "1e2", "1e4", "1e8", "1e15"):
                gain = ours["initial"] - ours[kind + gap]
                away.append(gain - (theirs["initial"] - theirs[gap]))
        assert len(away) == 49
        return float(np.sqrt(np.mean(np.square(away))))

    assert f"{difference('best_'):.3f} (root mean square" in prose(16)
    assert f"with the last medoids by {difference(''):.3f}" in prose(16)


def test_item_21_has_the_initial_objectives_of_the_paper():
    assert {name: paper_row("mix-res", name)["initial"] for name in INITIAL} == INITIAL


def test_an_item_must_fail_as_printed_and_hold_as_repaired():
    def holds(printed, repaired):
        return judge_erratum(0, "error", "", PrintedAndRepaired(printed, repaired)).holds

    assert holds([0.5], [0.0])
    assert holds([np.nan], [0.0])
    assert not holds([0.0], [0.0])
    assert not holds([0.5], [0.5])
    assert not holds([0.5], [np.nan])


def test_what_was_measured_is_counted():
    item = PrintedAndRepaired([0.5, 0.0, np.nan], [0.0], "{count} differ, by {worst}")
    finding = judge_erratum(0, "open", "", item)
    assert finding.measured == "2 of 3 differ, by inf"


def test_a_step_of_fuzzy_cmeans_by_hand():
    """Squared distances 1 and 4 give memberships 0.8 and 0.2, whose squares are the weights."""
    centers = fuzzy_step(np.array([[0.0], [3.0]]), np.array([[1.0], [2.0]]))
    assert centers.flatten() == pytest.approx([3 * 0.04 / 0.68, 3 * 0.64 / 0.68])


def test_overall_trimming_by_hand():
    points = np.array([[0.0], [5.0], [1.0], [10.0], [13.0]])
    kept = keep_overall(points, np.array([[0.0], [10.0]]), keep=0.6)
    assert kept.tolist() == [True, False, True, True, False]
