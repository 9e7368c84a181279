"""Results as Markdown, as an HTML page, and in docs/paper.md."""

from pathlib import Path

import pytest

from lloydformer.paper import pages
from lloydformer.paper.artefact import LABELS, Scope, load_artefact
from lloydformer.paper.pages import fill_marks, find_marks, format_sheet, paper_page
from lloydformer.paper.reproduce import add_verdicts, load_result, reproduce_label

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results" / "paper"
# Results by the authors' code that are kept beside those by the text.
BY_AUTHORS = ("trf-train-authors", "mix-res-authors")


@pytest.fixture
def result(sample, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "load_artefact", lambda label: sample)
    return reproduce_label(sample, Scope(), tmp_path)


def test_a_sheet_has_tables_pictures_and_verdicts(sample, result):
    text = format_sheet(sample, result, ["sample.png"])
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


def test_the_overview_ends_with_all_labels_together(result):
    both = {"one": result, "two": result}
    text = fill_marks("<!-- overview of all -->\n<!-- end -->\n", both)
    last = text.splitlines()[-2]
    assert last == (
        "| all |  | 0 of 2 claims hold (2 do not hold); 2 of 2 numbers within 0.5; beyond the "
        "paper: 2 findings |"
    )
    html = paper_page(both)
    assert "0 of 2 claims hold (2 do not hold); 2 of 2 numbers within 0.5" in html


def test_marks_are_filled_from_results(result):
    text = (
        "a\n<!-- verdicts of sample -->\nold\n<!-- end -->\n<!-- runs of sample -->\n<!-- end -->\n"
    )
    once = fill_marks(text, {"sample": result})
    assert "\nold\n" not in once
    assert "| And three? |" in once
    assert "seed 0" in once
    assert once.count("<!-- end -->") == 2
    assert fill_marks(once, {"sample": result}) == once
    assert fill_marks(once, {}) == text.replace("old\n", "")
    assert find_marks(text) == [("verdicts", "sample"), ("runs", "sample")]


def test_the_documentation_is_generated_from_the_results():
    results = {label: load_result(RESULTS, label) for label in (*LABELS, *BY_AUTHORS)}
    assert fill_marks(PAGE, results) == PAGE, "run: python benchmarks/paper.py"


def test_every_label_has_its_verdicts_in_the_documentation():
    found = {label for kind, label in find_marks(PAGE) if kind == "verdicts"}
    assert found == {*LABELS, *BY_AUTHORS}


@pytest.mark.parametrize("label", [*LABELS, *BY_AUTHORS])
def test_published_verdicts_are_those_of_the_code(label):
    result = load_result(RESULTS, label)
    assert result is not None, "a result is published for every label"
    assert add_verdicts(load_artefact(label), result) == result, "run: python benchmarks/paper.py"
