"""Results as Markdown, as an HTML page, and in docs/paper.md."""

from pathlib import Path

import pytest

from lloydformer.paper import markdown, page
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.markdown import fill_marks, marks, sheet
from lloydformer.paper.page import paper_page
from lloydformer.paper.paper_numbers import numbers, printed
from lloydformer.paper.run import load_result, make, with_verdicts
from lloydformer.paper.scope import Scope

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture
def result(sample, tmp_path, monkeypatch):
    for module in (markdown, page):
        monkeypatch.setattr(module, "artefact", lambda label: sample)
    return make(sample, Scope(), tmp_path)


def test_a_sheet_has_tables_pictures_and_verdicts(sample, result):
    text = sheet(sample, result, ["sample.png"])
    assert "| one | 3 |\n| two | 4 |" in text
    assert "![sample.png](sample.png)" in text
    assert "| “two \\| is below one” (sec:sample) | 4 | **does not hold** | It is not. |" in text
    assert "| tab:sample: one 3 (3) | 1 of 1 within 0.5 | +0 (one) | A round number. |" in text
    assert "| And three? | not asked |  |" in text
    assert text.index("Claims of") < text.index("Numbers of") < text.index("Beyond the paper")


SUMMARY = (
    "0 of 1 claims hold (1 does not hold); 1 of 1 numbers within 0.5; beyond the paper: 1 finding"
)


def test_a_page_needs_no_other_file_and_counts_the_kinds_apart(result):
    html = paper_page({"sample": result})
    assert html.count(SUMMARY) == 2  # in the overview and above the tables
    assert "<strong>does not hold</strong>" in html
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_the_overview_ends_with_all_labels_together(result, tmp_path, monkeypatch):
    monkeypatch.setattr(markdown, "LABELS", ("sample", "sample"))
    text = fill_marks("<!-- overview of all -->\n<!-- end -->\n", tmp_path)
    last = text.splitlines()[-2]
    assert last == (
        "| all |  | 0 of 2 claims hold (2 do not hold); 2 of 2 numbers within 0.5; beyond the "
        "paper: 2 findings |"
    )
    html = paper_page({"one": result, "two": result})
    assert "0 of 2 claims hold (2 do not hold); 2 of 2 numbers within 0.5" in html


def test_marks_are_filled_from_results(result, tmp_path):
    text = (
        "a\n<!-- verdicts of sample -->\nold\n<!-- end -->\n<!-- runs of sample -->\n<!-- end -->\n"
    )
    once = fill_marks(text, tmp_path)
    assert "\nold\n" not in once
    assert "| And three? |" in once
    assert "seed 0" in once
    assert once.count("<!-- end -->") == 2
    assert fill_marks(once, tmp_path) == once
    assert marks(text) == [("verdicts", "sample"), ("runs", "sample")]


def test_the_documentation_is_generated_from_the_results():
    assert fill_marks(PAGE, RESULTS) == PAGE, "run: python benchmarks/paper.py"


def test_every_label_has_its_verdicts_in_the_documentation():
    found = {label for kind, label in marks(PAGE) if kind == "verdicts"}
    assert found == set(LABELS)


@pytest.mark.parametrize("label", LABELS)
def test_published_verdicts_are_those_of_the_code(label):
    result = load_result(RESULTS, label)
    assert result is not None, "a result is published for every label"
    assert with_verdicts(artefact(label), result) == result, "run: python benchmarks/paper.py"


def test_the_papers_numbers_by_hand():
    assert numbers("mix-res")["rows"]["normal"] == [6.343, 5.2636, 5.0052]
    columns, rows = printed("mix-res")
    assert columns == ["", "initial", "lloyd", "transformer"]
    assert rows[0] == ["normal", "6.343", "5.2636", "5.0052"]
    assert printed("comp-alg") is None
